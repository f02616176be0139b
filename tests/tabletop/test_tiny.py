"""The tiny model: the shipped weights do what the card says, and the numpy networks are the torch ones."""

import asyncio
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from PIL import Image as Pil

import weft
from weft.errors import UserError
from weft.models.endpoint import CallError, EndpointReply
from weft.models.registry import resolve_endpoint
from weft.store.blobs import Blobs
from weft.types import Message, Request, Text
from weft_tabletop.make import make
from weft_tabletop.make.dialogues import make_dialogue
from weft_tabletop.make.domains import WEAVE
from weft_tabletop.make.requests import random_scene
from weft_tabletop.tiny import prompt, vocab, weights
from weft_tabletop.tiny.corpus import BLANK, generate_documents
from weft_tabletop.tiny.endpoint import SHIPPED, load
from weft_tabletop.world.scenes import draw, read
from weft_tabletop.world.wordings import QUESTIONS


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-1000] ^= 1
    path.write_bytes(bytes(data))


def ask(endpoint: Any, *parts: Any, want: str = "image", draw_number: int = 0) -> EndpointReply:
    return asyncio.run(endpoint.send((Message("user", parts),), Request(want, draw=draw_number)))  # type: ignore[arg-type]


def test_it_draws_edits_and_answers(blobs: Blobs):
    tiny = resolve_endpoint("tabletop/tiny", blobs)
    made = ask(tiny, Text("Draw a mint table with a red circle at a1, a blue star at c3."))
    (image,) = made.parts
    assert str(read(blobs.decode(image)).scene) == "mint: red circle at a1, blue star at c3"
    (moved,) = ask(tiny, image, Text("Move the red circle at a1 in image to d4.")).parts
    assert str(read(blobs.decode(moved)).scene) == "mint: blue star at c3, red circle at d4"
    assert ask(tiny, Text("What is at c3 in "), moved, Text("?"), want="text").parts == (Text("a blue star"),)


def test_words_it_does_not_know_are_noted_and_do_not_crash_it(blobs: Blobs):
    sent = ask(resolve_endpoint("tabletop/tiny", blobs), Text("Paint me a zebra at b2, s'il vous plaît."))
    assert "outside its vocabulary: me, zebra" in sent.reason


def test_another_size_of_picture_is_one_clear_line(blobs: Blobs):
    image = blobs.put_pil(Pil.new("RGB", (100, 80)))
    with pytest.raises(CallError, match="takes images of 64 x 64; this one is 100 x 80"):
        ask(resolve_endpoint("tabletop/tiny", blobs), image, Text("Mirror image left to right."))


def test_greedy_is_the_default_and_a_seed_decides_the_rest(blobs: Blobs):
    scene = random_scene(random.Random(1), 7, 7)
    asked = Text("Draw a sky table with a red circle at a1.")
    greedy = [ask(resolve_endpoint("tabletop/tiny", blobs), asked).parts for _ in range(2)]
    assert greedy[0] == greedy[1] and scene
    hot = resolve_endpoint("tabletop/tiny", blobs, {"temperature": "3", "seed": "5"})
    again = resolve_endpoint("tabletop/tiny", blobs, {"temperature": "3", "seed": "5"})
    assert ask(hot, asked).parts == ask(again, asked).parts != ask(hot, asked, draw_number=1).parts


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (lambda folder: (folder / "talker.safetensors").unlink(), "there are no weights"),
        (lambda folder: (folder / "talker.safetensors").write_bytes(b"half a file"), "cannot be read"),
        (
            lambda folder: (folder / "talker.safetensors").write_bytes(
                (folder / "talker.safetensors").read_bytes()[:-5000]
            ),
            "cut short",
        ),
        (lambda folder: flip(folder / "talker.safetensors"), "do not match its digest"),
    ],
)
def test_weights_that_are_missing_or_broken_are_one_clear_line(blobs: Blobs, tmp_path: Path, spoil: Any, why: str):
    folder = tmp_path / "weights"
    shutil.copytree(SHIPPED, folder)
    spoil(folder)
    with pytest.raises(UserError, match=why):
        resolve_endpoint("tabletop/tiny", blobs, {"weights": str(folder)})


def test_weights_of_another_vocabulary_are_refused(blobs: Blobs, tmp_path: Path):
    folder = tmp_path / "weights"
    shutil.copytree(SHIPPED, folder)
    arrays, facts = weights.load(folder / "talker.safetensors")
    weights.save(folder / "talker.safetensors", arrays, {**facts, "vocabulary": "7"})
    with pytest.raises(UserError, match="another vocabulary"):
        resolve_endpoint("tabletop/tiny", blobs, {"weights": str(folder)})


def test_shipped_weights_are_small():
    sizes = {path.name: path.stat().st_size for path in SHIPPED.glob("*.safetensors")}
    assert sizes["pictures.safetensors"] + sizes["talker.safetensors"] < 10e6
    assert sizes.get("single.safetensors", 0) < 10e6


def test_pictures_survive_the_way_through_the_codes():
    tiny, chance = load(SHIPPED, "talker"), random.Random(4)
    scenes = [random_scene(chance, 0, 12) for _ in range(40)]
    right = sum(read(tiny.decode_image(tiny.encode_image(draw(scene)))).scene == scene for scene in scenes)
    assert right >= 38


def test_it_stands_between_copy_and_the_oracle(tmp_path: Path):
    data = make("tabletop-weave", tmp_path / "tables", samples=16, seed=7)
    view: dict[str, Any] = {
        "history": "dialogue",
        "placement": "inline",
        "judge": "tabletop/exact",
        "home": tmp_path / "home",
    }
    runs = {
        model: weft.evaluate("weave", data=data, model=model, **view)
        for model in ("copy", "tabletop/tiny", "tabletop/oracle")
    }
    scores = {name: run.tables()[-1].cells("overall")["KP"].value or 0.0 for name, run in runs.items()}
    assert scores["copy"] + 0.5 < scores["tabletop/tiny"] <= scores["tabletop/oracle"] == 1.0


def test_every_word_of_the_grammar_is_in_the_vocabulary():
    chance = random.Random(2)
    for _ in range(300):
        mix = WEAVE[chance.choice(list(WEAVE))]
        for turn in make_dialogue("", mix.kinds, QUESTIONS, 6, chance, inputs=2).turns:
            assert vocab.UNK not in vocab.encode(turn.text) + vocab.encode(turn.answer), turn.text
            if turn.answer:
                assert vocab.encode(vocab.decode(vocab.encode(turn.answer))) == vocab.encode(turn.answer)


def test_training_documents_are_what_the_model_meets_in_a_run():
    """The prompt of a reply is the beginning of a training document: what is learnt is what is asked."""
    source = generate_documents(3)
    for _ in range(200):
        document = next(source)
        assert len(document.tokens) == len(document.loss_mask) and document.tokens.count(BLANK) == vocab.PLACES * len(
            document.scenes
        )
        assert any(document.loss_mask) and document.tokens[0] == vocab.USER
    assert prompt.build_prompt((Message("user", (Text("Describe image."),)),))[-1] == vocab.ASSISTANT


def test_numpy_and_torch_compute_the_same():
    torch = pytest.importorskip("torch", reason="torch is an extra (train)")
    import numpy as np

    from weft_tabletop.tiny.infer import KeyValueCache, flatten_prompt
    from weft_tabletop.tiny.net import ImageNetwork, Talker

    tiny = load(SHIPPED, "talker")
    image_network, talker = ImageNetwork().eval(), Talker().eval()
    image_network.load_state_dict(
        {name: torch.tensor(array) for name, array in tiny._image_weights.items()}, strict=False
    )
    talker.load_state_dict({name: torch.tensor(array) for name, array in tiny._talker_weights.items()}, strict=False)
    image = draw(random_scene(random.Random(9)))
    codes = tiny.encode_image(image)
    with torch.no_grad():
        pixels = torch.tensor(np.asarray(image)).permute(2, 0, 1)[None].float() / 127.5 - 1
        assert image_network.codes(pixels)[0].tolist() == codes
        tokens, places = flatten_prompt(
            [vocab.USER, codes, *vocab.encode("Mirror image left to right."), vocab.ASSISTANT]
        )
        theirs = talker(torch.tensor([tokens]), torch.tensor([places]))[0, -1].numpy()
    ours = tiny._forward(np.array(tokens), np.array(places), KeyValueCache(tiny._layers))
    assert np.abs(ours - theirs).max() < 1e-3


def test_what_it_kept_of_earlier_prompts_changes_no_reply():
    from weft_tabletop.tiny.infer import Tiny

    used = Tiny(SHIPPED)
    codes = used.encode_image(draw(random_scene(random.Random(3))))
    first = [vocab.USER, codes, *vocab.encode("Mirror image left to right."), vocab.ASSISTANT]
    second = [*first, codes, vocab.END, vocab.USER, *vocab.encode("Turn image a quarter to the left."), vocab.ASSISTANT]
    replies = [used.reply(prompt) for prompt in (first, second, first, second)]
    assert replies[:2] == replies[2:] == [Tiny(SHIPPED).reply(prompt) for prompt in (first, second)]
