"""Model providers: one file each, with the requests it builds and the replies it reads.

`BUILT_IN` maps the name in `NAME/MODEL` to the function that builds the endpoint (`module:function`) and to a line of
help. Nothing is imported until a provider is used.
"""

BUILT_IN: dict[str, tuple[str, str]] = {
    "openai": (
        "weft.models.providers.openai_chat:openai",
        "OpenAI's models, text output: openai/NAME, such as openai/gpt-4.1; or openai/NAME@URL",
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
        "Google's models, interleaved text and images: gemini/NAME or gemini/NAME@URL",
    ),
    "openrouter": (
        "weft.models.providers.openrouter:from_spec",
        "many providers behind one key: openrouter/NAME or openrouter/NAME@URL",
    ),
    "anthropic": (
        "weft.models.providers.anthropic:from_spec",
        "Anthropic's models, text output: anthropic/NAME or anthropic/NAME@URL",
    ),
    "vllm-omni": ("weft.models.providers.vllm_omni:from_spec", "vLLM-Omni's chat: vllm-omni/NAME@URL"),
    "sglang": (
        "weft.models.providers.openai_chat:sglang",
        "SGLang's chat, text output: sglang/NAME@URL (images: openai-images)",
    ),
    "dashscope": (
        "weft.models.providers.dashscope:from_spec",
        "Qwen-Image, and Wan with mode=task: dashscope/NAME or dashscope/NAME@URL",
    ),
    "ark": ("weft.models.providers.ark:from_spec", "Seedream on Ark: ark/NAME or ark/NAME@URL"),
    "bfl": ("weft.models.providers.bfl:from_spec", "FLUX by Black Forest Labs, as tasks: bfl/NAME or bfl/NAME@URL"),
    "xai": ("weft.models.providers.xai:from_spec", "xAI's image models: xai/NAME or xai/NAME@URL"),
    "infer": (
        "weft.models.providers.infer:from_spec",
        "the /infer servers of IMUG-Bench's authors: infer/http://127.0.0.1:8000/infer",
    ),
    "hf": (
        "weft.models.local.hf:from_spec",
        "transformers weights, on this machine: hf/REPOSITORY or hf/FOLDER (extra local)",
    ),
    "diffusers": (
        "weft.models.local.diffusion:from_spec",
        "diffusers pipelines, on this machine: diffusers/REPOSITORY or diffusers/FOLDER (extra local)",
    ),
    "served": (
        "weft.models.providers.served:from_spec",
        "a model behind `weft serve`, on one GPU or many: served/NAME@URL",
    ),
    "folder": (
        "weft.benchmarks.outputs:from_spec",
        "images and texts generated elsewhere, in the benchmark's own layout: folder/DIR",
    ),
    "copy": ("weft.models.baselines:copy_from_spec", "returns the last image of its input: a baseline"),
    "ocr": (
        "weft.judges.ocr:from_spec",
        "as a judge, decides key points that only quote text, by reading the image (extra ocr)",
    ),
    "detector": (
        "weft.judges.detector:from_spec",
        "as a judge, finds objects and their colours by Mask2Former and CLIP, on this machine: detector/mask2former "
        "(extra local)",
    ),
    "logprobs": (
        "weft.judges.logprobs:from_spec",
        "as a judge, says how likely a model's answer is, where its server gives log-probabilities: logprobs/NAME@URL",
    ),
    "constant": (
        "weft.models.baselines:constant_from_spec",
        "as a judge, gives every reply the same score: constant/10, constant/max",
    ),
}
