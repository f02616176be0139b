"""Objects in images, by Mask2Former's instance segmentation, and their colours, by CLIP."""

import torch
import transformers
from PIL import Image

from weft.models.local.run.clip import ClipEncoder
from weft.models.local.run.device import DTYPES, resolve_device

MAX_INSTANCES = 100  # of one image, as the configuration of the released detector has it
BLANK = "#999"  # what stands around an object when its colour is named
TEMPLATES = ("a photo of a {color} {name}", "a photo of a {color}-colored {name}", "a photo of a {color} object")


class ObjectDetector:
    """Finds instances of the classes that its weights know."""

    def __init__(self, folder, device=""):
        transformers.utils.logging.disable_progress_bar()
        transformers.utils.logging.set_verbosity_error()
        self.device, dtype = resolve_device(device, "float32")
        self.model = transformers.Mask2FormerForUniversalSegmentation.from_pretrained(
            folder, dtype=DTYPES[dtype], use_safetensors=True, local_files_only=True
        )
        self.model.to(self.device).eval()
        self.processor = transformers.Mask2FormerImageProcessorPil.from_pretrained(folder, local_files_only=True)
        self.class_count = self.model.config.num_labels

    @torch.inference_mode()
    def find(self, images, wanted):
        """Return the instances of each PIL image: (class number, box, confidence, mask), masks as bool tensors.

        `wanted` has the numbers of the classes to return, for each image.
        """
        inputs = self.processor(images=images, return_tensors="pt").to(self.device)
        outputs = self.model(pixel_values=inputs["pixel_values"], pixel_mask=inputs.get("pixel_mask"))
        padded = inputs["pixel_values"].shape[-2:]
        shown = inputs["pixel_mask"] if "pixel_mask" in inputs else torch.ones(len(images), *padded)
        found = []
        for image, numbers, classes, masks, pixels in zip(
            images, wanted, outputs.class_queries_logits, outputs.masks_queries_logits, shown, strict=True
        ):
            height, width = int(pixels.any(1).sum()), int(pixels.any(0).sum())
            found.append(find_instances(classes, masks, numbers, padded, (height, width), (image.height, image.width)))
        return found


def find_instances(classes, masks, wanted, padded, shown, size):
    """Return the best instances of one image that are of the wanted classes, scored as the released detector does.

    Every pair of a query and a class is an instance, of which the best are kept, whatever their class. Its confidence
    is the class's probability times the mean probability of the mask's pixels.
    """
    probabilities = classes.float().softmax(-1)[:, :-1]
    count = min(MAX_INSTANCES, probabilities.numel())
    scores, places = probabilities.flatten().topk(count)
    queries = torch.div(places, probabilities.shape[1], rounding_mode="floor")
    labels = places % probabilities.shape[1]
    instances = []
    for score, label, query in zip(scores.tolist(), labels.tolist(), queries.tolist(), strict=True):
        if label not in wanted:  # a mask at the size of the image takes time and memory
            continue
        logits = resize_mask(masks[query], padded, shown, size)
        mask = logits > 0
        area = mask.sum()
        certainty = (logits.sigmoid() * mask).sum() / (area + 1e-6)
        instances.append((label, find_box(mask), score * float(certainty), mask))
    return instances


def resize_mask(mask, padded, shown, size):
    """Return a mask at the size of the image: at that of the padded batch first, cut to what the image takes of it."""
    logits = resize(mask.float()[None, None], padded)[..., : shown[0], : shown[1]]
    return resize(logits, size)[0, 0]


def resize(logits, size):
    return torch.nn.functional.interpolate(logits, size=tuple(size), mode="bilinear", align_corners=False)


def find_box(mask):
    """Return left, top, right, bottom of a mask, all 0 for an empty one."""
    columns = torch.where(mask.any(0))[0]
    rows = torch.where(mask.any(1))[0]
    if not len(columns):
        return (0.0, 0.0, 0.0, 0.0)
    return (float(columns[0]), float(rows[0]), float(columns[-1] + 1), float(rows[-1] + 1))


class ColorNamer:
    """Names the colour of objects, cut out by their masks."""

    def __init__(self, folder, colors, device=""):
        self.encoder = ClipEncoder(folder, device)
        self.colors = colors
        self.classifiers = {}  # by class

    def name(self, image, instances, class_name):
        """Return the colour of each instance, given as (box, mask), whose box is not empty."""
        classifier = self.classifier(class_name)
        vectors = torch.tensor(self.encoder.embed_images(cut_out(image, box, mask) for box, mask in instances))
        return [self.colors[place] for place in (vectors @ classifier).argmax(1).tolist()]

    def classifier(self, class_name):
        if class_name not in self.classifiers:
            columns = []
            for color in self.colors:
                texts = [template.format(color=color, name=class_name) for template in TEMPLATES]
                mean = torch.tensor(self.encoder.embed_texts(texts)).mean(0)
                columns.append(torch.nn.functional.normalize(mean, dim=0))
            self.classifiers[class_name] = torch.stack(columns, 1)
        return self.classifiers[class_name]


def cut_out(image, box, mask):
    """Return the object on a plain ground, cut to its box."""
    blank = Image.new("RGB", image.size, BLANK)
    return Image.composite(image, blank, Image.fromarray(mask.cpu().numpy())).crop(tuple(map(int, box)))
