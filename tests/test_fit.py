import pytest
from msgspec.structs import replace
from PIL import Image as Pil

from weft.errors import ImageError
from weft.models.adapt import adapt_messages, build_strip
from weft.store.blobs import Blobs
from weft.types import Image, Message, Takes, Text


def picture(width: int, height: int, colour: str = "black") -> Pil.Image:
    return Pil.new("RGB", (width, height), colour)


def test_the_strip_has_the_papers_geometry():
    assert build_strip([picture(100, 200), picture(300, 100), picture(50, 50)], [1, 2, 3]).size == (910, 200)
    assert build_strip([picture(6000, 1000), picture(6000, 1000)], [1, 2]).size == (8192, 682)


def test_pictures_stand_five_white_pixels_apart_in_order():
    row = build_strip([picture(100, 120, "red"), picture(100, 120, "blue")], [1, 2])
    assert row.size == (205, 120)
    assert row.getpixel((50, 100)) == (255, 0, 0) and row.getpixel((150, 100)) == (0, 0, 255)
    assert {row.getpixel((x, 60)) for x in range(100, 105)} == {(255, 255, 255)}


def test_labels_are_drawn_near_the_corner_white_on_dark_and_black_on_light():
    dark, light = build_strip([picture(240, 240), picture(240, 240, "white")], [1, 2]).crop((0, 0, 240, 240)), None
    row = build_strip([picture(240, 240), picture(240, 240, "white")], [1, 2])
    dark, light = row.crop((10, 10, 40, 40)), row.crop((255, 10, 285, 40))
    assert dark.getextrema() == ((0, 255),) * 3, "a white label on black"
    assert light.getextrema()[0][0] == 0, "a black label on white"
    assert row.crop((60, 60, 230, 230)).getextrema() == ((0, 0),) * 3, "and nothing elsewhere"


def test_the_label_is_the_number_the_text_uses():
    pair = [picture(240, 240), picture(240, 240)]
    assert build_strip(pair, [1, 2]).tobytes() != build_strip(pair, [3, 7]).tobytes()


def test_a_strip_that_would_be_enormous_is_refused():
    with pytest.raises(ImageError, match="strip of 2 would be"):
        build_strip([picture(4000, 1), picture(1, 4000)], [1, 2])


def test_transparent_pictures_lie_on_white():
    row = build_strip([Pil.new("RGBA", (50, 50), (255, 0, 0, 0)), picture(50, 50)], [1, 2])
    assert row.getpixel((40, 45)) == (255, 255, 255)


@pytest.fixture
def images(blobs: Blobs) -> list[Image]:
    return [blobs.put_pil(picture(40, 30, colour)) for colour in ("red", "green", "blue")]


def label(image: Image, number: int) -> Image:
    return Image(image.digest, image.media_type, image.width, image.height, image.size, number)


def test_own_pictures_move_to_the_next_user_message_under_their_caption(images: list[Image], blobs: Blobs):
    messages = (
        Message("user", (Text("Draw."),)),
        Message("assistant", (Text("Image #2:"), label(images[0], 2))),
        Message("user", (Text("Now change Image #2."),)),
    )
    fitted = adapt_messages(messages, Takes(own_images="user"), blobs)
    assert fitted == (
        Message("user", (Text("Draw."),)),
        Message("assistant", (Text("Image #2"),)),
        Message("user", (Text("Image #2:"), images[0], Text("Now change Image #2."))),
    )
    assert adapt_messages(messages, Takes(), blobs)[1].parts == (Text("Image #2:"), images[0])


def test_a_list_keeps_the_place_of_each_picture_in_the_text(images: list[Image], blobs: Blobs):
    asked = (Message("user", (Text("Is "), images[0], Text(" before "), images[1], Text("?"))),)
    (fitted,) = adapt_messages(asked, Takes(images="list"), blobs)
    assert fitted.parts == (images[0], images[1], Text("Is [image 1] before [image 2] ?"))


def test_a_strip_of_one_is_the_picture_itself_and_of_more_a_new_one(images: list[Image], blobs: Blobs):
    takes = Takes(images="strip")
    (one,) = adapt_messages((Message("user", (images[0], Text("Edit image."))),), takes, blobs)
    assert one.parts == (images[0], Text("Edit image."))
    many = (
        Message(
            "user",
            (Text("Image #1:"), label(images[0], 1), Text("Image #4:"), label(images[1], 4), Text("Mix Image #4 in.")),
        ),
    )
    (fitted,) = adapt_messages(many, takes, blobs)
    row, text = fitted.parts
    assert (
        isinstance(row, Image)
        and (row.width, row.height) == (85, 30)
        and row.digest not in {image.digest for image in images}
    )
    assert text == Text("Mix Image #4 in.")
    assert adapt_messages(many, takes, blobs) == (fitted,), "the same strip has the same bytes"


def test_without_pictures_their_absence_is_visible(images: list[Image], blobs: Blobs):
    (fitted,) = adapt_messages((Message("user", (images[0], Text("What is this?"))),), Takes(images="none"), blobs)
    assert fitted.parts == (Text("[picture not shown] What is this?"),)


def test_a_large_picture_is_shrunk_to_the_longest_side_allowed(images: list[Image], blobs: Blobs):
    (fitted,) = adapt_messages((Message("user", (images[0],)),), Takes(max_side=20), blobs)
    (small,) = fitted.parts
    assert isinstance(small, Image) and (small.width, small.height) == (20, 15)
    assert adapt_messages((Message("user", (images[0],)),), Takes(max_side=40), blobs)[0].parts == (images[0],)


def test_a_strip_of_a_dialogue_comes_with_a_note_and_one_of_a_single_message_does_not(blobs: Blobs):
    one, two = (blobs.put_pil(picture(40, 40, colour)) for colour in ("red", "blue"))
    strips = Takes(images="strip")
    dialogue = (
        Message("user", (Text("Draw it."), one)),
        Message("assistant", (two,)),
        Message("user", (Text("Make it red."),)),
    )
    [whole] = adapt_messages(dialogue, strips, blobs)
    said = whole.parts[-1]
    assert isinstance(said, Text) and said.text.startswith("The picture above is a row of the 2 pictures")
    assert "Assistant: [image 2]" in said.text and said.text.endswith("User: Make it red.")
    [single] = adapt_messages((Message("user", (one, two, Text("Join them."))),), strips, blobs)
    assert single.parts[-1] == Text("Join them.")


def test_a_picture_that_moves_keeps_the_name_that_the_words_before_it_give_it(blobs: Blobs):
    """As it stands at its first mention (`placement inline`), without a colon, or with one."""
    mine = blobs.put_pil(picture(20, 20))
    for words, stays in (("I made Image #2", "I made Image #2"), ("Image #2:", "Image #2")):
        said = Message("assistant", (Text(words), Image(mine.digest, mine.media_type, 20, 20, mine.size, label=2)))
        asked = (Message("user", (Text("Draw."),)), said, Message("user", (Text("What is in it?"),)))
        fitted = adapt_messages(asked, Takes(own_images="user"), blobs)
        assert fitted[1].parts == (Text(stays),)
        assert fitted[2].parts == (Text("Image #2:"), mine, Text("What is in it?"))


def test_every_picture_of_a_strip_has_a_number_of_its_own(blobs: Blobs):
    """A reply of two pictures: the one that counts has its number, the other one that nobody else has."""
    first, second, third = (blobs.put_pil(picture(40, 40, colour)) for colour in ("red", "green", "blue"))
    given = Message("user", (Text("Image #1:"), replace(first, label=1), Text("Draw two.")))
    said = Message("assistant", (second, Text("Image #2:"), replace(third, label=2)))
    (message,) = adapt_messages((given, said, Message("user", (Text("Compare."),))), Takes(images="strip"), blobs)
    row, text = message.parts
    assert isinstance(row, Image) and isinstance(text, Text)
    assert row == blobs.put_pil(build_strip([blobs.decode(one) for one in (first, second, third)], [1, 3, 2]))
    assert "[image 3]" in text.text


def test_the_only_text_beside_a_picture_is_left_as_it_is(blobs: Blobs):
    one = blobs.put_pil(picture(20, 20))
    (message,) = adapt_messages((Message("user", (one, Text("Edit image after that "))),), Takes(images="strip"), blobs)
    assert message.parts[1] == Text("Edit image after that ")
