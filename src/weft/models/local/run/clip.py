"""CLIP's embeddings of images and texts, and SigLIP's of images, from weights on this machine."""

import json
from pathlib import Path

import torch
import transformers

from weft.errors import UserError
from weft.models.local.run.device import DTYPES, resolve_device

BATCH = 8  # decoded images are held in memory
FAMILIES = {
    "clip": (transformers.CLIPModel, transformers.CLIPImageProcessorPil),
    "siglip": (transformers.SiglipModel, transformers.SiglipImageProcessorPil),
}


class ImageEncoder:
    """Embeds images as vectors of length 1, in batches, by CLIP or SigLIP."""

    def __init__(self, folder, device=""):
        kind = json.loads((Path(folder) / "config.json").read_text()).get("model_type", "")
        if kind not in FAMILIES:
            raise UserError(f"{folder} has a model of the type {kind or 'nothing'}; give one of {', '.join(FAMILIES)}")
        model, processor = FAMILIES[kind]
        self.device, dtype = resolve_device(device, "float32")
        self.model = model.from_pretrained(folder, dtype=DTYPES[dtype], use_safetensors=True, local_files_only=True)
        self.model.to(self.device).eval()
        self.image_processor = processor.from_pretrained(folder, local_files_only=True)

    @torch.inference_mode()
    def embed_images(self, images):
        """`images` is an iterable of PIL images; return one list of numbers for each."""
        vectors = []
        for batch in _batches(images):
            inputs = self.image_processor(images=batch, return_tensors="pt").to(self.device)
            vectors += _normalized(self.model.get_image_features(**inputs))
        return vectors


class ClipEncoder(ImageEncoder):
    """Embeds images and texts by CLIP. Texts are cut to the length that the model reads."""

    def __init__(self, folder, device=""):
        super().__init__(folder, device)
        self.tokenizer = transformers.CLIPTokenizer.from_pretrained(folder, local_files_only=True)
        self.max_tokens = self.model.config.text_config.max_position_embeddings

    @torch.inference_mode()
    def embed_texts(self, texts):
        """Return one list of numbers for each text."""
        vectors = []
        for batch in _batches(texts):
            inputs = self.tokenizer(
                batch, padding=True, truncation=True, max_length=self.max_tokens, return_tensors="pt"
            ).to(self.device)
            vectors += _normalized(self.model.get_text_features(**inputs))
        return vectors

    def is_cut(self, text):
        """Whether a text is longer than the model reads."""
        return len(self.tokenizer(text, truncation=False)["input_ids"]) > self.max_tokens


def _batches(items):
    batch = []
    for item in items:
        batch.append(item)
        if len(batch) == BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _normalized(features):
    features = getattr(features, "pooler_output", features)
    return torch.nn.functional.normalize(features.float(), dim=-1).cpu().tolist()
