"""`weft build` on the command line: what it lists, shows, builds and refuses."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from weft.cli.app import app
from weft.errors import UserError

TABLETOP = ("--writer", "tabletop/oracle", "--painter", "tabletop/oracle", "--checker", "tabletop/exact")


def weft(*words: object) -> str:
    done = CliRunner().invoke(app, ["build", *map(str, words)], env={"COLUMNS": "200"})
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return done.stdout


def test_list_names_every_recipe_with_its_roles():
    text = weft("list")
    assert [line.split()[0] for line in text.splitlines()[:-1:2]] == [
        "tabletop-100k",
        "tabletop-fusion",
        "tabletop-recall",
        "tabletop-sequence",
        "weave-100k",
        "weave-derive",
        "weave-fusion",
        "weave-recall",
        "weave-sequence",
    ]
    assert text.count("roles: writer, painter, editor, mender, checker") == 8


def test_show_draws_the_steps_with_who_is_asked():
    lines = [line.strip() for line in weft("show", "weave-recall").splitlines()]
    steps = lines[lines.index("Roles:") - 16 : lines.index("Roles:") - 1]
    assert [line.split()[0] for line in steps] == [
        *("seeds", "|", "write", "|", "filter", "|", "draw", "|", "edit", "|", "assemble", "|", "ask", "|", "dialogues")
    ]
    assert steps[8].endswith("[painter, editor, mender, checker]")


def test_help_has_the_roles_and_the_options_of_the_recipe():
    text = weft("weave-fusion", "--help")
    for words in ("Roles:", "--mender NAME", "[default: that of --editor]", "Options of the recipe:", "--originals"):
        assert words in text


def test_a_build_from_the_command_line_can_be_evaluated_and_has_a_status(tmp_path: Path):
    out = tmp_path / "data"
    text = weft("tabletop-recall", "--seeds", 4, "--questions", 0, *TABLETOP, "--out", out)
    assert text.startswith("4/4 seeds, 4 kept") and f"weft build status {out}" in text
    status = weft("status", out)
    assert "parts done: 1 of 1 (complete)" in status and "dialogues kept: 4 (100.0%), 4.00 turns" in status
    done = CliRunner().invoke(app, ["data", "check", "weave", str(out)])
    assert "4 of 4 records can be used" in done.stdout and "all complete" in done.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("weave-recall", "--drawer", "copy"), "weave-recall has no role or option --drawer; did you mean --writer or"),
        (
            ("weave-recall", "--paintr", "copy"),
            "weave-recall has no role or option --paintr; did you mean --painter or --editor? its roles",
        ),
        (("weave-recall", "--out", "x", "--seeds"), "--seeds needs a value"),
        (("weave-recall", "--writer", "--painter", "copy", "--out", "x"), "--writer needs a value"),
        (("weave-recall",), "give --out DIR"),
        (("weave-recall", "--out", "x", "--ray", "many"), "--ray many: give a number of workers, or auto"),
        (("weave-recall", "--out", "x", "--address", "auto"), "--address is about workers on Ray: give --ray N"),
        (("nothing", "--out", "x"), "there is no recipe 'nothing'"),
        (("weave-recal", "--out", "x"), "did you mean weave-recall?"),
        (("status", "."), "is no build: it has no build.json"),
        (("show", "mine.py:Recipe"), "there is no file mine.py"),
    ],
)
def test_a_mistake_is_one_line(words: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError) as caught:
        weft(*words)
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_originals_and_captions_that_cannot_do_are_refused(tmp_path: Path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "one.txt").write_text("A cup.\n\nA cup.\n")
    roles = ("--writer", "copy", "--painter", "copy", "--editor", "copy", "--out", tmp_path / "out")
    for words, message in (
        (("--originals", tmp_path / "empty"), "has 0 images (.png, .jpg, .jpeg, .webp), and needs 2"),
        (("--originals", tmp_path / "none"), "there is no such folder"),
        (("--captions", tmp_path / "one.txt"), "has 1 captions, and needs 2"),
        (("--captions", tmp_path / "none.txt"), "cannot be read"),
        (("--captions", "a", "--originals", "b"), "give one of the two"),
        (("--embedder", tmp_path / "none"), "there is no such folder, and it is no repository's name"),
    ):
        with pytest.raises(UserError, match=".*") as caught:
            weft("weave-fusion", *roles, *words)
        assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_build_with_failed_seeds_says_what_happened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "models.py").write_text("def broken(messages, want):\n    raise ValueError('the brush is lost')\n")
    monkeypatch.chdir(tmp_path)
    models = ("--writer", "tabletop/oracle", "--painter", "models.py:broken", "--checker", "tabletop/exact")
    done = CliRunner().invoke(app, ["build", "tabletop-recall", "--seeds", "1", *models, "--out", "out"])
    assert done.exit_code == 1
    assert "the last of them: seed 0, step draw: painter models.py:broken: " in done.stdout
    assert "ValueError: the brush is lost" in done.stdout
    status = weft("status", "out")
    assert "1 a call failed (tried again by the same command)" in status
    assert "the first that failed: seed 0: painter models.py:broken: " in status


def test_a_dry_run_says_one_price_where_there_is_one(tmp_path: Path):
    roles = ("--writer", "openai/gpt-4.1", "--painter", "gemini/gemini-2.5-flash-image")
    roles = (*roles, "--editor", "gemini/gemini-2.5-flash-image")
    text = weft("weave-fusion", "--seeds", 2, *roles, "--out", tmp_path / "out", "--dry-run")
    (writer,) = [line for line in text.splitlines() if line.startswith("writer: ")]
    (painter,) = [line for line in text.splitlines() if line.startswith("painter: ")]
    assert writer.count("$") == 1 and painter.endswith(f"4 images, about ${4 * 0.039:.2f}") and "together: " in text
    assert not (tmp_path / "out").exists()
