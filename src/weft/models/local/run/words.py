"""Models that answer dialogues in words: language models, and those that see pictures among the words."""

import copy
from concurrent.futures import ThreadPoolExecutor

import torch
import transformers
from transformers import GenerationMixin, LogitsProcessorList

from weft.errors import UserError
from weft.models.local.endpoint import Made
from weft.models.local.run.device import DTYPES, clear, is_full
from weft.models.local.run.processors import processor_of
from weft.models.local.run.sampling import RowDraws
from weft.store.pictures import upright
from weft.types import Image, Text, Usage

APART = "\u200b"


class Words:
    """A model with its processor, loaded."""

    def __init__(self, weights, blobs, kind, *, tell, device, dtype, trusted, settings):
        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity_error()
        folder = weights.here(tell)
        size = sum(path.stat().st_size for path in folder.rglob("*.safetensors"))
        tell(f"loading weights, {size / 1e9:.1f} GB" if size > 1e8 else "loading weights")
        self.blobs, self.device, self.settings = blobs, torch.device(device), settings
        made_by = getattr(transformers, kind, None)
        sees = made_by is None or "ForCausalLM" not in kind
        made_by = made_by or transformers.AutoModelForImageTextToText
        named = {"trust_remote_code": trusted, "local_files_only": True}
        how = {"attn_implementation": settings["attention"]} if "attention" in settings else {}
        self.processor = (processor_of if sees else transformers.AutoTokenizer.from_pretrained)(folder, **named)
        if made_by is not transformers.AutoModelForImageTextToText:
            named.pop("trust_remote_code")
        self.model = made_by.from_pretrained(folder, dtype=DTYPES[dtype], use_safetensors=True, **named, **how).to(self.device).eval()
        self.sees = sees
        self.tokenizer = self.processor.tokenizer if sees else self.processor
        self.tokenizer.padding_side = "left"
        if self.tokenizer.pad_token is None:
            self.tokenizer.pad_token = self.tokenizer.eos_token
        if not getattr(self.processor, "chat_template", None) and not getattr(self.tokenizer, "chat_template", None):
            raise UserError(f"{weights.name} has no chat template: it completes texts, and was not trained to answer a dialogue")
        marks = {*self.tokenizer.all_special_tokens, *self.tokenizer.get_added_vocab()}
        self._special = sorted((mark for mark in marks if len(mark) > 2 and not mark.isalnum()), key=len, reverse=True)

    # what a gatherer wants

    def work(self, batch):
        with torch.inference_mode():
            return self.speak(batch) if batch[0].want.kind == "text" else self.draw(batch)

    def is_full(self, error):
        return is_full(error)

    def clear(self):
        clear()

    # words

    def draw(self, batch):
        raise UserError("it makes words, and no pictures")

    def speak(self, batch):
        config, draws = self._sampling(batch)
        inputs = self._inputs(batch)
        made = GenerationMixin.generate(  # a class of its own may leave the processors out
            self.model, **inputs, generation_config=config, logits_processor=LogitsProcessorList([draws]), guidance_scale=None
        )
        before = inputs["input_ids"].shape[1]
        return [self._read(row, inputs["attention_mask"][at], before, config) for at, row in enumerate(made)]

    def _sampling(self, batch):
        """How it is sampled: as its authors say, unless the user does."""
        usual, given = self.model.generation_config, self.settings
        temperature = given.get("temperature", (usual.temperature or 1.0) if usual.do_sample else 0.0)
        config = copy.deepcopy(usual)
        config.do_sample, config.temperature, config.top_p, config.top_k, config.max_length = False, None, None, None, None
        config.max_new_tokens, config.num_beams, config.guidance_scale = given["max_tokens"], 1, None
        config.pad_token_id = config.pad_token_id if config.pad_token_id is not None else self.tokenizer.pad_token_id
        if config.eos_token_id is None:
            config.eos_token_id = self.tokenizer.eos_token_id
        top_k, top_p = given.get("top_k", usual.top_k), given.get("top_p", usual.top_p)
        seeds = [one.seed for one in batch]
        return config, RowDraws(seeds, temperature=temperature, top_k=top_k, top_p=top_p, device=self.device)

    def _inputs(self, batch):
        texts = [self.template(one) for one in batch]
        named = {"padding": True, "padding_side": "left", "return_tensors": "pt", "add_special_tokens": self.begins(texts)}
        if self.sees:
            shown = [self.pictures(one) for one in batch]
            inputs = self.processor(text=texts, images=shown if any(shown) else None, **named)
        else:
            return self.tokenizer(texts, return_token_type_ids=False, **named).to(self.device)
        return inputs.to(self.device, self.model.dtype)

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
            content = parts if self.sees else "\n".join(part["text"] for part in parts)
            dialogue.append({"role": message.role, "content": content})
        return self.processor.apply_chat_template(dialogue, add_generation_prompt=True, tokenize=False)

    def plain(self, text):
        """A text in which nothing is taken for a token that only templates may write: a dataset's words must not end a turn."""
        for token in self._special:
            if token in text:
                text = text.replace(token, token[0] + APART + token[1:])
        return text

    def pictures(self, asked):
        def opened(image):
            with self.blobs.opened(image) as picture:
                return upright(picture).convert("RGB")

        if len(asked.images) < 2:
            return [opened(image) for image in asked.images]
        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(opened, asked.images))

    def _read(self, row, mask, before, config):
        ends = config.eos_token_id if isinstance(config.eos_token_id, list) else [config.eos_token_id]
        said = row[before:].tolist()
        stop = next((at for at, token in enumerate(said) if token in ends), None)
        text = self.tokenizer.decode(said if stop is None else said[:stop], skip_special_tokens=True)
        usage = Usage(int(mask.sum()), len(said) if stop is None else stop + 1)
        return Made((text.strip(),), usage, cut=stop is None)
