"""One file a provider: what it is sent, and what its replies mean. Here is which of them have a name."""

BUILT_IN: dict[str, tuple[str, str]] = {
    "openai": (
        "weft.models.providers.openai_chat:openai",
        "OpenAI's models, in words: openai/NAME, such as openai/gpt-4.1; or openai/NAME@URL",
    ),
    "openai-images": (
        "weft.models.providers.openai_images:from_spec",
        "any server that speaks OpenAI's image API, generations and edits: openai-images/NAME@URL",
    ),
    "openai-responses": (
        "weft.models.providers.openai_responses:from_spec",
        "OpenAI's Responses with the image tool: openai-responses/NAME or openai-responses/NAME@URL",
    ),
    "openai-chat": (
        "weft.models.providers.openai_chat:from_spec",
        "any server that speaks OpenAI chat completions: openai-chat/NAME@URL",
    ),
    "gemini": (
        "weft.models.providers.gemini:from_spec",
        "Google's models, words and pictures in their order: gemini/NAME or gemini/NAME@URL",
    ),
    "openrouter": (
        "weft.models.providers.openrouter:from_spec",
        "many providers behind one key: openrouter/NAME or openrouter/NAME@URL",
    ),
    "anthropic": (
        "weft.models.providers.anthropic:from_spec",
        "Anthropic's models, in words: anthropic/NAME or anthropic/NAME@URL",
    ),
    "vllm-omni": ("weft.models.providers.vllm_omni:from_spec", "vLLM-Omni's chat: vllm-omni/NAME@URL"),
    "sglang": (
        "weft.models.providers.openai_chat:sglang",
        "SGLang's chat, in words: sglang/NAME@URL (pictures: openai-images)",
    ),
    "dashscope": (
        "weft.models.providers.dashscope:from_spec",
        "Qwen-Image, and Wan with mode=task: dashscope/NAME or dashscope/NAME@URL",
    ),
    "ark": ("weft.models.providers.ark:from_spec", "Seedream on Ark: ark/NAME or ark/NAME@URL"),
    "bfl": ("weft.models.providers.bfl:from_spec", "FLUX of Black Forest Labs, as tasks: bfl/NAME or bfl/NAME@URL"),
    "xai": ("weft.models.providers.xai:from_spec", "xAI's pictures: xai/NAME or xai/NAME@URL"),
    "infer": (
        "weft.models.providers.infer:from_spec",
        "the /infer servers of IMUG-Bench's authors: infer/http://127.0.0.1:8000/infer",
    ),
    "hf": (
        "weft.models.local.hf:from_spec",
        "weights for transformers, on this machine: hf/REPOSITORY or hf/FOLDER (extra local)",
    ),
    "diffusers": (
        "weft.models.local.diffusion:from_spec",
        "pipelines of diffusers, on this machine: diffusers/REPOSITORY or diffusers/FOLDER (extra local)",
    ),
    "served": (
        "weft.models.providers.served:from_spec",
        "what `weft serve` serves, on one GPU or many: served/NAME@URL",
    ),
    "folder": (
        "weft.benchmarks.outputs:from_spec",
        "pictures and texts made elsewhere, in the benchmark's own layout: folder/DIR",
    ),
    "copy": ("weft.models.baselines:copy_from_spec", "returns the last picture it was shown: a floor"),
    "ocr": (
        "weft.judges.ocr:from_spec",
        "as a judge, decides key points that are plain words by reading them in the picture (extra ocr)",
    ),
    "constant": (
        "weft.models.baselines:constant_from_spec",
        "as a judge, gives the same score to all: constant/10, constant/max",
    ),
}
