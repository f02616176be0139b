"""The card of a built dataset: its counts are those of the data, its terms what was stated, its share what people found;
and shards of a build, which become the whole."""

import asyncio
import json
import re
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

import weft
from weft.building.build import run_build
from weft.building.card import CardFacts, write_card
from weft.building.counts import count_dialogues
from weft.building.manifest import read_manifest
from weft.building.merge import merge_builds
from weft.building.parts import read_rows
from weft.building.people import estimate_pass_rate
from weft.building.request import BuildRequest
from weft.building.status import read_status
from weft.cli.app import app
from weft.errors import UserError

ROLES = {
    "writer": "tabletop/oracle",
    "painter": "tabletop/oracle",
    "editor": "tabletop/oracle",
    "checker": "tabletop/exact",
}
MIX = "fusion=2,recall=1,sequence=2,derive=1"


def request(out: Path, seeds: int = 24, shard: str = "") -> BuildRequest:
    options = {"mix": MIX, "stories": 0.2}
    return BuildRequest("tabletop-100k", out, ROLES, seeds, options=options, part_size=5, shard=shard)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "data"
    assert asyncio.run(run_build(request(out))).reason is None
    return out


def cells(card: str, heading: str) -> list[list[str]]:
    """The rows of the table below a heading, without its head."""
    section = card.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def command(*words: object) -> str:
    done = CliRunner().invoke(app, [*map(str, words)], env={"COLUMNS": "200"})
    assert done.exit_code == 0, (done.output, done.exception)
    return done.stdout


def test_the_card_counts_what_weft_data_stats_counts(built: Path):
    card = (built / "card.md").read_text()
    assert re.search(r"^24 multi-turn dialogues with [\d,]+ images \(\d\.\d\d each\)", card, re.MULTILINE)
    stories = sum(row.draft.split == "test" for row in read_rows(built) if row.draft)
    assert f"{24 - stories} are for training, {stories} are the test part." in card
    counts = weft.measure_dataset("weave-100k", built, repeats=False).counts  # the training part
    by_domain = {row[0]: int(row[2]) for row in cells(card, "Domains and types") if row[0] not in ("", "story")}
    assert by_domain == {path[0]: group.dialogues for path, group in counts.groups.items() if len(path) == 1}


def test_the_test_part_is_a_benchmark_with_references_of_its_own(built: Path):
    samples = json.loads((built / "test" / "tabletop.json").read_text())["samples"]
    assert set(samples) == {str(one["idx"]) for one in json.loads((built / "test" / "test.json").read_text())}
    run = weft.evaluate("weave", data=built / "test", model="reference", judge="tabletop/exact", home=built / "home")
    assert run.record.state == "finished"
    assert all(verdict.value == 1 for verdict in run.verdicts if verdict.metric == "key_point")


def test_the_card_has_models_with_their_terms_and_what_each_made(built: Path):
    rows = {row[0]: row[1:] for row in cells((built / "card.md").read_text(), "Models, licences and terms")}
    counts = count_dialogues(read_rows(built))
    assert rows["painter"][0] == "tabletop/oracle" and rows["painter"][4] == "Apache-2.0"
    assert int(rows["painter"][1]) == counts.image_parties["painter"] > 0
    assert rows["the recipe's program"][1] == str(counts.image_parties["program"])
    assert counts.images == sum(counts.image_parties.values())


def test_no_writer_of_the_tabletop_is_asked_to_reword_chess(built: Path):
    assert not {"rewordings refused", "requests reworded"} & set(read_status(built).counts)


def test_names_and_terms_in_a_card_are_no_markdown(built: Path):
    manifest = replace(read_manifest(built), terms={"painter": "a|b <script> [x](y)\x1b[31m"}, recipe="x\n# y[1]")
    status = replace(read_status(built), manifest=manifest)
    card = write_card(CardFacts(status, count_dialogues(read_rows(built)), {"images": 2}, None))
    assert "\n# y" not in card and "<script>" not in card and "\x1b" not in card and r"a\|b" in card
    assert "Left out as duplicates of earlier dialogues: 2 by images." in card and "license: other" in card


def test_the_share_of_right_dialogues_is_that_of_people_with_an_interval(built: Path):
    rows = [row for row in read_rows(built) if row.draft and row.draft.split == "train"]
    rated: dict[str, dict[int, dict[str, list[float]]]] = {}
    for row in rows[:12]:
        assert row.draft is not None
        rated[str(row.number + 1)] = {turn: {"ann": [1.0, 0.9], "bob": [1.0]} for turn in range(len(row.draft.turns))}
    rated[str(rows[0].number + 1)][0] = {"ann": [0.2, 1.0], "bob": [1.0]}
    rated[str(rows[12].number + 1)] = {0: {"ann": [1.0]}}  # not all of it was rated
    rate = estimate_pass_rate("run", "train", rated, read_rows(built), 0.7)
    assert (rate.annotators, rate.rated, rate.passed, rate.total) == (2, 12, 11, len(rows))
    assert rate.low is not None and rate.high is not None and rate.low < 11 / 12 < rate.high <= 1
    for nobody in ({}, {str(rows[12].number + 1): {0: {"ann": [1.0]}}}):
        with pytest.raises(UserError, match="no dialogue of which every reference was rated"):
            estimate_pass_rate("run", "train", nobody, rows, 0.7)


def test_people_rate_a_build_and_its_card_says_what_they_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    roles = "--writer tabletop/oracle --painter tabletop/oracle --checker tabletop/exact"
    command(*f"build tabletop-recall --seeds 8 {roles} --questions 0 --out data".split())
    command(*["run", "weave", "--data", "data", "--model", "reference", "--judge", "constant/max", "--no-preflight"])
    lines = ["sample,turn,metric,annotator,value"]
    lines += [f"{sample},{turn},key_point,ann,{int(sample > 1)}" for sample in range(1, 7) for turn in (1, 2, 3, 4)]
    Path("people.csv").write_text("\n".join(lines))
    command("rate", "last", "--import", "people.csv")
    said = command("build", "card", "data", "--rated", "last")
    assert re.search(r"5 of 6 rated dialogues are right; of all 8: 83\.3% \(\d+\.\d% to \d+\.\d%\)", said)
    assert "Of 6 dialogues of the training data, 5 were wholly right" in Path("data/card.md").read_text()
    command(*f"build tabletop-sequence --seeds 8 {roles} --questions 0 --stories 0 --out other".split())
    strange = CliRunner().invoke(app, ["build", "card", "other", "--rated", "last"])
    assert isinstance(strange.exception, UserError) and "it has another reference in dialogue 1" in str(
        strange.exception
    )
    command(*f"build tabletop-recall --seeds 9 {roles} --questions 0 --out data".split())
    assert "among all 8 of the training data that there were then" in Path("data/card.md").read_text()
    command(*["run", "weave", "--data", "data", "--model", "copy", "--judge", "constant/max", "--no-preflight"])
    failed = CliRunner().invoke(app, ["build", "card", "data", "--rated", "last"])
    assert isinstance(failed.exception, UserError) and "is a run of copy" in str(failed.exception)


def test_terms_are_stated_later_and_stay(tmp_path: Path):
    roles = {"writer": "tabletop/oracle", "painter": "copy"}
    asyncio.run(run_build(BuildRequest("tabletop-recall", tmp_path, roles, 1)))
    assert "terms that nobody stated: painter" in command("build", "card", tmp_path)
    command("build", "card", tmp_path, "--terms", "painter=CC0-1.0")
    asyncio.run(run_build(BuildRequest("tabletop-recall", tmp_path, roles, 2)))
    assert read_manifest(tmp_path).known_terms["painter"] == "CC0-1.0"
    command("build", "card", tmp_path, "--terms", "writer=as I say", "--terms", "program=CC BY 4.0")
    asyncio.run(run_build(BuildRequest("tabletop-recall", tmp_path, roles, 2)))
    assert read_manifest(tmp_path).known_terms == {
        "writer": "as I say",
        "painter": "CC0-1.0",
        "program": "CC BY 4.0",
    }, "what was stated stays when the build goes on"


def test_a_damaged_list_of_what_was_left_out_is_written_anew(built: Path):
    before = (built / "left_out.jsonl").read_bytes()
    (built / "left_out.jsonl").write_text("garbage\n")
    assert asyncio.run(run_build(request(built))).reason is None
    assert (built / "left_out.jsonl").read_bytes() == before


def test_a_merge_keeps_the_home_of_a_build_and_takes_none_that_is_not_the_shards(tmp_path: Path):
    whole, part = tmp_path / "whole", tmp_path / "part"
    asyncio.run(run_build(replace(request(whole, 5), home=tmp_path / "home")))
    asyncio.run(run_build(request(part, 10, "2/2")))
    merged = merge_builds(whole, [part])
    assert merged.open_parts == 0 and read_manifest(whole).home == "../home"
    assert command("build", "merge", whole, part).endswith(f"dataset: 10 dialogues in {whole}\n")
    manifest = json.loads((part / "build.json").read_text())
    asyncio.run(run_build(BuildRequest("weave-derive", tmp_path / "private", {}, 1, options={"side": 128})))
    (part / "build.json").write_text(json.dumps({**manifest, "home": "../private"}))
    with pytest.raises(UserError, match="which has no call of this build"):
        merge_builds(tmp_path / "stolen", [part])


def test_shards_become_the_build_that_was_made_at_once(built: Path, tmp_path: Path):
    for number in (1, 2, 3):
        outcome = asyncio.run(run_build(request(tmp_path / str(number), shard=f"{number}/3")))
        assert outcome.reason is None and not (tmp_path / str(number) / "test.json").exists()
    assert outcome.progress.total == 5, "the last shard has one part"
    whole = tmp_path / "whole"
    merged = merge_builds(whole, [tmp_path / "1"])
    assert (merged.new_parts, merged.parts, merged.open_parts, merged.missing_shards) == (2, 5, 3, ("2/3", "3/3"))
    said = command("build", "merge", whole, tmp_path / "1", tmp_path / "2", tmp_path / "3")
    assert said == f"3 parts are new; 5 of 5 are done\ndataset: 24 dialogues in {whole}\n"
    for name in ("train.json", "test/test.json", "provenance.jsonl", "tabletop.json", "left_out.jsonl"):
        assert (whole / name).read_bytes() == (built / name).read_bytes()
    parts = [{file.name: file.read_bytes() for file in (out / "parts").iterdir()} for out in (whole, built)]
    assert parts[0] == parts[1]
    again = asyncio.run(run_build(request(whole, 26)))
    assert again.reason is None and again.progress.earlier == 20 and again.progress.total == 26


def test_shards_of_other_builds_are_refused(built: Path, tmp_path: Path):
    asyncio.run(run_build(request(tmp_path / "1", 5, "1/2")))
    with pytest.raises(UserError, match="it is shard 1/2, not shard 2/2"):
        asyncio.run(run_build(request(tmp_path / "1", 10, "2/2")))
    asyncio.run(run_build(replace(request(tmp_path / "2", 10, "2/2"), options={"mix": "recall=1"})))
    with pytest.raises(UserError, match="is another build than"):
        merge_builds(tmp_path / "whole", [tmp_path / "1", tmp_path / "2"])
    with pytest.raises(UserError, match="is the folder that the shards are to be merged into"):
        merge_builds(tmp_path / "1", [tmp_path / "1"])
    with pytest.raises(UserError, match="write which of how many"):
        asyncio.run(run_build(request(tmp_path / "3", 5, "3/2")))
    assert (
        not (tmp_path / "whole").exists() and json.loads((tmp_path / "1" / "build.json").read_text())["shard"] == "1/2"
    )
