"""Models that answer dialogues in words: language models, and those that see pictures among the words."""

import copy
import datetime
import importlib
from concurrent.futures import ThreadPoolExecutor

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

OPEN = "<think>"
TOP_K = 50  # what the library takes where a model that samples does not say


class FixedDate(datetime.datetime):
    """Templates that tell the date tell this one: tomorrow's answer is today's."""

    @classmethod
    def now(cls, tz=None):
        return cls(2025, 1, 1, tzinfo=tz)


class TextEngine:
    """A model with its processor, loaded."""

    def __init__(self, weights, blobs, kind, *, tell, device, dtype, trusted, settings):
        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity_error()
        folder = weights.ensure_local(tell)
        size = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
        tell(f"loading weights, {size / 1e9:.1f} GB" if size > 1e8 else "loading weights")
        self.blobs, self.device, self.settings = blobs, torch.device(device), settings
        made_by = getattr(transformers, kind, None)
        self.sees = "ForCausalLM" not in kind
        named = {"trust_remote_code": trusted, "local_files_only": True}
        self.processor = (load_processor if self.sees else transformers.AutoTokenizer.from_pretrained)(folder, **named)
        if made_by is None:
            if self.sees:
                made_by = transformers.AutoModelForImageTextToText
            else:
                made_by = transformers.AutoModelForCausalLM
        else:
            named.pop("trust_remote_code")
        if "attention" in settings:
            named["attn_implementation"] = settings["attention"]
        model, found = made_by.from_pretrained(
            folder, dtype=DTYPES[dtype], use_safetensors=True, output_loading_info=True, **named
        )
        check_all_loaded(weights.name, found)
        self.model = model.to(self.device).eval()
        if self.sees:
            self.tokenizer = self.processor.tokenizer
        else:
            self.tokenizer = self.processor
        self.tokenizer.padding_side = "left"
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        self._written = getattr(self.processor, "chat_template", None) or getattr(self.tokenizer, "chat_template", None)
        if not self._written:
            raise UserError(
                f"{weights.name} has no chat template: it completes texts, and was not trained to answer a dialogue"
            )
        if "strftime_now" in str(self._written):  # a function of the library's, that looks at its clock
            importlib.import_module("transformers.utils.chat_template_utils").datetime = FixedDate
        self.plain = SpecialTokenEscaper([self.tokenizer])

    # what a gatherer wants

    def run_batch(self, batch):
        with torch.inference_mode(), device_context(self.device):
            if batch[0].wanted == "text":
                return self.speak(batch)
            return self.draw(batch)

    def is_out_of_memory(self, error):
        return is_out_of_memory(error)

    def free_memory(self):
        free_memory()

    # words

    def draw(self, batch):
        raise UserError("it makes words, and no pictures")

    def speak(self, batch):
        texts = [self.template(one) for one in batch]
        inputs = self._inputs(batch, texts)
        config, processors = self._sampling(batch, inputs["attention_mask"])
        made = GenerationMixin.generate(  # a class of its own may leave the processors out
            self.model,
            **inputs,
            generation_config=config,
            logits_processor=LogitsProcessorList(processors),
            guidance_scale=None,
        )
        before = inputs["input_ids"].shape[1]
        told = inputs["attention_mask"].sum(1).tolist()
        return [self._read(*one, before, config) for one in zip(texts, told, made, strict=True)]

    def _sampling(self, batch, mask):
        """How it is sampled: as its authors say, unless the user does. What the library would do over a whole batch is
        done row by row."""
        usual = self.model.generation_config
        given = self.settings
        temperature = given.get("temperature", (usual.temperature or 1.0) if usual.do_sample else 0.0)
        config = copy.deepcopy(usual)
        config.do_sample = False
        config.max_new_tokens = given["max_tokens"]
        config.num_beams = 1
        for name in (
            "temperature",
            "top_p",
            "top_k",
            "min_p",
            "typical_p",
            "repetition_penalty",
            "max_length",
            "guidance_scale",
        ):
            setattr(config, name, None)
        if not (config.pad_token_id is not None):
            config.pad_token_id = self.tokenizer.pad_token_id
        if config.eos_token_id is None:
            config.eos_token_id = self.tokenizer.eos_token_id
        draws = RowSampler(
            [one.seed for one in batch],
            temperature=temperature,
            top_k=given.get("top_k", usual.top_k if usual.top_k is not None else TOP_K),
            top_p=given.get("top_p", usual.top_p),
            min_p=usual.min_p,
            typical_p=usual.typical_p,
            device=self.device,
        )
        penalty = usual.repetition_penalty or 1.0
        return config, [*([RepetitionPenalty(penalty, mask)] if penalty != 1.0 else []), draws]

    def _inputs(self, batch, texts):
        named = {
            "padding": True,
            "padding_side": "left",
            "return_tensors": "pt",
            "add_special_tokens": self.begins(texts),
        }
        if not self.sees:
            return self.tokenizer(texts, return_token_type_ids=False, **named).to(self.device)
        shown = [self.pictures(one) for one in batch]
        return self.processor(text=texts, images=shown if any(shown) else None, **named).to(
            self.device, self.model.dtype
        )

    def begins(self, texts):
        """Whether the tokenizer is to add what every text begins with: not where the template has done so."""
        first = self.tokenizer.bos_token
        return self.sees and not (first and texts[0].startswith(first))

    def template(self, asked):
        """A dialogue in the words that the model was trained with."""
        dialogue = []
        for message in asked.messages:
            parts = [
                {"type": "image"} if isinstance(part, Image) else {"type": "text", "text": self.plain(part.text)}
                for part in message.parts
                if isinstance(part, (Image, Text))
            ]
            if self.sees:
                content = parts
            else:
                content = "\n".join(part.get("text", "[picture not shown]") for part in parts)
            dialogue.append({"role": message.role, "content": content})
        more = {"enable_thinking": self.settings["thinking"]} if "thinking" in self.settings else {}
        named = {"chat_template": self._written} if isinstance(self._written, str) else {}
        return self.processor.apply_chat_template(dialogue, add_generation_prompt=True, tokenize=False, **named, **more)

    def pictures(self, asked):
        def opened(image):
            with self.blobs.opened(image) as picture:
                return flatten(picture)

        if len(asked.images) < 2:
            return [opened(image) for image in asked.images]
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(opened, asked.images))

    def _read(self, text, told, row, before, config):
        if isinstance(config.eos_token_id, list):
            ends = config.eos_token_id
        else:
            ends = [config.eos_token_id]
        said = row[before:].tolist()
        stop = next((at for at, token in enumerate(said) if token in ends), None)
        words = self.tokenizer.decode(said if stop is None else said[:stop], skip_special_tokens=True).strip()
        # the template began to think for it
        if text.rstrip().endswith(OPEN):
            words = OPEN + words
        return LocalOutput((words,), Usage(int(told), len(said) if stop is None else stop + 1), truncated=stop is None)


def check_all_loaded(name, found):
    """Raises UserError where weights are not those of the class: the library would fill in chance, and say nothing."""
    missing = sorted({*found.get("missing_keys", ()), *(str(one[0]) for one in found.get("mismatched_keys", ()))})
    if missing:
        some = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        raise UserError(
            f"{name} does not have all weights of its class: {some} are missing, or of another shape (saved by another name?)"
        )
