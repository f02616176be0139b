"""Models that answer dialogues with text: language models, and models that see images among the text."""

import copy
import datetime
import importlib
from concurrent.futures import ThreadPoolExecutor

import msgspec
import torch
import transformers
from transformers import GenerationMixin, LogitsProcessorList

from weft.errors import UserError
from weft.models.local.endpoint import LocalOutput
from weft.models.local.run.device import DTYPES, device_context, free_memory, is_out_of_memory
from weft.models.local.run.processors import load_processor
from weft.models.local.run.sampling import RepetitionPenalty, RowSampler
from weft.models.local.run.special_tokens import SpecialTokenEscaper
from weft.store.images import flatten
from weft.types import Image, Text, Usage

THINK_TAG = "<think>"
DEFAULT_TOP_K = 50  # the library's default for a model that samples
SAMPLING_FIELDS = (  # of a generation config; a RowSampler does this row by row
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "typical_p",
    "repetition_penalty",
    "max_length",
    "guidance_scale",
)


class FixedDate(datetime.datetime):
    """The date for chat templates that state it: tomorrow's prompt must be today's."""

    @classmethod
    def now(cls, tz=None):
        return cls(2025, 1, 1, tzinfo=tz)


class TextEngine:
    """A loaded model with its processor. It runs batches of calls."""

    def __init__(self, weights, blobs, kind, *, tell, device, dtype, trusted, settings):
        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity_error()
        folder = weights.ensure_local(tell)
        report_size(folder.glob("*.safetensors"), tell)
        self.blobs = blobs
        self.device = torch.device(device)
        self.settings = settings
        self.sees = "ForCausalLM" not in kind
        self.processor = self._load_processor(folder, trusted)
        self.model = self._load_model(weights, folder, kind, dtype, trusted)
        self.tokenizer = self.processor.tokenizer if self.sees else self.processor
        self.tokenizer.padding_side = "left"
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self._chat_template = self._find_chat_template(weights)
        self.escape = SpecialTokenEscaper([self.tokenizer])

    def _load_processor(self, folder, trusted):
        load = load_processor if self.sees else transformers.AutoTokenizer.from_pretrained
        return load(folder, trust_remote_code=trusted, local_files_only=True)

    def _load_model(self, weights, folder, kind, dtype, trusted):
        arguments = {"local_files_only": True}
        model_class = getattr(transformers, kind, None)
        if model_class is None:
            arguments["trust_remote_code"] = trusted
            model_class = transformers.AutoModelForCausalLM
            if self.sees:
                model_class = transformers.AutoModelForImageTextToText
        if "attention" in self.settings:
            arguments["attn_implementation"] = self.settings["attention"]
        model, loading_info = model_class.from_pretrained(
            folder, dtype=DTYPES[dtype], use_safetensors=True, output_loading_info=True, **arguments
        )
        check_all_loaded(weights.name, loading_info)
        return model.to(self.device).eval()

    def _find_chat_template(self, weights):
        template = getattr(self.processor, "chat_template", None) or getattr(self.tokenizer, "chat_template", None)
        if not template:
            raise UserError(
                f"{weights.name} has no chat template: it completes texts, and was not trained to answer a dialogue"
            )
        if "strftime_now" in str(template):  # the library's function for the current date
            importlib.import_module("transformers.utils.chat_template_utils").datetime = FixedDate
        return template

    # what a batch queue calls

    def settings_of(self, batch):
        """Return the settings of a batch: the model's own, changed by what all calls of the batch bring along."""
        brought = msgspec.structs.asdict(batch[0].settings)
        return {**self.settings, **{name: value for name, value in brought.items() if value is not None}}

    def run_batch(self, batch):
        with torch.inference_mode(), device_context(self.device):
            if batch[0].modality == "text":
                return self.generate_text(batch)
            return self.generate_images(batch)

    def is_out_of_memory(self, error):
        return is_out_of_memory(error)

    def free_memory(self):
        free_memory()

    # text

    def generate_images(self, batch):
        raise UserError("it makes text, and no images")

    def generate_text(self, batch):
        prompts = [self.format_prompt(call) for call in batch]
        inputs = self._prepare_inputs(batch, prompts)
        config, processors = self._sampling(batch, inputs["attention_mask"])
        rows = GenerationMixin.generate(  # not the class's own, which may ignore the processors
            self.model,
            **inputs,
            generation_config=config,
            logits_processor=LogitsProcessorList(processors),
            guidance_scale=None,
        )
        prompt_length = inputs["input_ids"].shape[1]
        prompt_tokens = inputs["attention_mask"].sum(1).tolist()
        outputs = []
        for prompt, count, row in zip(prompts, prompt_tokens, rows, strict=True):
            outputs.append(self._read_output(prompt, int(count), row[prompt_length:].tolist(), config))
        return outputs

    def _sampling(self, batch, mask):
        """Return a generation config and processors: the model's own settings, unless the user gives others."""
        defaults = self.model.generation_config
        settings = self.settings_of(batch)
        default_temperature = 0.0
        if defaults.do_sample:
            default_temperature = defaults.temperature or 1.0
        config = copy.deepcopy(defaults)
        config.do_sample = False
        config.max_new_tokens = settings["max_tokens"]
        config.num_beams = 1
        for name in SAMPLING_FIELDS:
            setattr(config, name, None)
        if config.pad_token_id is None:
            config.pad_token_id = self.tokenizer.pad_token_id
        if config.eos_token_id is None:
            config.eos_token_id = self.tokenizer.eos_token_id
        default_top_k = DEFAULT_TOP_K if defaults.top_k is None else defaults.top_k
        sampler = RowSampler(
            [call.seed for call in batch],
            temperature=settings.get("temperature", default_temperature),
            top_k=settings.get("top_k", default_top_k),
            top_p=settings.get("top_p", defaults.top_p),
            min_p=defaults.min_p,
            typical_p=defaults.typical_p,
            device=self.device,
        )
        penalty = defaults.repetition_penalty or 1.0
        if penalty != 1.0:
            return config, [RepetitionPenalty(penalty, mask), sampler]
        return config, [sampler]

    def _prepare_inputs(self, batch, prompts):
        arguments = self.tokenizer_arguments(prompts)
        if not self.sees:
            return self.tokenizer(prompts, return_token_type_ids=False, **arguments).to(self.device)
        images = [self._load_images(call) for call in batch]
        if not any(images):
            images = None
        return self.processor(text=prompts, images=images, **arguments).to(self.device, self.model.dtype)

    def tokenizer_arguments(self, prompts):
        """Return arguments for a batch. Begin tokens are not added if the chat template has added them."""
        begin_token = self.tokenizer.bos_token
        has_begin_token = bool(begin_token) and prompts[0].startswith(begin_token)
        return {
            "padding": True,
            "padding_side": "left",
            "return_tensors": "pt",
            "add_special_tokens": self.sees and not has_begin_token,
        }

    def format_prompt(self, call):
        """Return the dialogue in the form of the model's chat template."""
        dialogue = []
        for message in call.messages:
            parts = []
            for part in message.parts:
                if isinstance(part, Image):
                    parts.append({"type": "image"})
                elif isinstance(part, Text):
                    parts.append({"type": "text", "text": self.escape(part.text)})
            content = parts
            if not self.sees:
                content = "\n".join(part.get("text", "[picture not shown]") for part in parts)
            dialogue.append({"role": message.role, "content": content})
        arguments = {}
        if "thinking" in self.settings:
            arguments["enable_thinking"] = self.settings["thinking"]
        if isinstance(self._chat_template, str):
            arguments["chat_template"] = self._chat_template
        return self.processor.apply_chat_template(dialogue, add_generation_prompt=True, tokenize=False, **arguments)

    def _load_images(self, call):
        def load(image):
            with self.blobs.decode_within_memory(image) as opened:
                return flatten(opened)

        if len(call.images) < 2:
            return [load(image) for image in call.images]
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(load, call.images))

    def _read_output(self, prompt, prompt_tokens, tokens, config):
        """Return the text up to the first end token; without one it was truncated."""
        end_tokens = config.eos_token_id
        if not isinstance(end_tokens, list):
            end_tokens = [end_tokens]
        end = next((index for index, token in enumerate(tokens) if token in end_tokens), None)
        truncated = end is None
        used = len(tokens) if truncated else end + 1
        text = self.tokenizer.decode(tokens[:end], skip_special_tokens=True).strip()
        if prompt.rstrip().endswith(THINK_TAG):  # the template opened the thinking
            text = THINK_TAG + text
        return LocalOutput((text,), Usage(prompt_tokens, used), truncated=truncated)


def report_size(files, tell):
    """Report how much is loaded, if that takes a while."""
    size = sum(path.stat().st_size for path in files)
    if size > 1e8:
        tell(f"loading weights, {size / 1e9:.1f} GB")
    else:
        tell("loading weights")


def check_all_loaded(name, loading_info):
    """Raise UserError if weights of the class are missing: the library would silently fill in random numbers."""
    mismatched = {str(entry[0]) for entry in loading_info.get("mismatched_keys", ())}
    missing = sorted({*loading_info.get("missing_keys", ()), *mismatched})
    if not missing:
        return
    names = ", ".join(missing[:3])
    if len(missing) > 3:
        names += f" and {len(missing) - 3} more"
    raise UserError(
        f"{name} does not have all weights of its class: {names} are missing, or of another shape "
        "(saved by another name?)"
    )
