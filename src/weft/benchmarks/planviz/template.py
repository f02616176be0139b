"""A folder to fill with tasks of one's own: one example of each kind, with pictures, and a page that says how."""

from pathlib import Path

from weft.benchmarks.planviz.drawings import draw_flowchart, draw_form, draw_park, draw_settings
from weft.benchmarks.planviz.files import PlanVizTask, write_tasks
from weft.store.images import encode_png

PLACES = {
    "Gate": (80, 440),
    "Lake": (600, 110),
    "Rose garden": (300, 250),
    "Cafe": (560, 400),
    "Playground": (110, 130),
}
PATHS = (
    ((80, 440), (300, 250), (600, 110)),
    ((80, 440), (560, 400), (600, 110)),
    ((110, 130), (300, 250), (560, 400)),
)
SWITCHES = {"Wi-Fi": True, "Bluetooth": False, "Location": True, "Dark mode": False}
HOW = """# Tasks for PlanViz, to fill in

One list for each kind of task, under the names that the benchmark's own code has for them. Each has one example: change it, copy it, or
delete it. A list that you have no tasks for may go. Names of lists and fields must stay as they are.

| kind | list | pictures |
| --- | --- | --- |
| a route, drawn from words | map/generation/map_gen.json | none |
| a route, drawn on a map | map/editing/map_editing_prompts.json | map/editing/imgs, map/editing/refs |
| a workflow, drawn from words | diagram/generation/diagram_gen.json | none |
| a workflow, drawn from a page, or changed | diagram/editing/diagram_edit.json | diagram/editing/imgs, diagram/editing/refs |
| an interface, drawn from words | UI/generation/ui_generation.json | none |
| an interface after somebody used it | UI/editing/ui_edit.json | UI/editing/imgs, UI/editing/refs |

A task:

| field | what | when |
| --- | --- | --- |
| `prompt` | what the model is asked for, as a person would say it | always |
| `correctness_key_points` | what the picture must show: a list of texts, one thing a text | always |
| `image_path` | the picture that is edited; the path begins at this folder | editing |
| `ref_image_path` | a picture of one right result; the judge sees it | editing, where you have one |
| `ended` | `closed` if there is one right result, `open` if there are many | if you want the two compared |
| `name` | a short name of your own, which no other task of its list has | if you like |

Reports call a task by its list and its name (`travel_plan_edit-gate-to-lake`), or by a digest if it has none. Pictures are PNG, JPEG,
WebP or GIF; the ending may be another than the path says.

Good key points:
- One thing each, so that it is met or not: not "the route is right", but "The route starts at the gate", "It passes the rose garden".
- About what can be seen. A judge has the picture, the prompt and the points, and no other knowledge of what you mean.
- From general ("A flowchart is drawn") to particular ("The third step is to tick the terms").
- Only what the prompt asks for, in words or by good sense: a model is not to be blamed for what it could not know.
- A point that quotes a text, and says no more than that it is there, can be decided without a judge (`--judge ocr`):
  `The words "Sign in" are shown`, `The button "Sign in" is visible`, `The title reads "City Library"`. What says more is left out there.

What is scored, each from 0 to 1:
- Cor: the share of key points that the picture meets. An edited picture that is nearly its source meets none.
- Vis: how sound the picture is; for edits of maps and interfaces how well it keeps what was not to change.
- Ef: whether it keeps to what was asked for.

Then, in the folder above this one (this folder is called FOLDER here):

    weft data check planviz FOLDER                                      what is wrong, with file, record and field
    weft run planviz --data FOLDER --model MODEL --judge JUDGE          `weft models` lists what may stand for MODEL and JUDGE
    weft report last --open                                             tables, every picture, every point with what the judge saw
    weft score RESULTS --benchmark planviz --data FOLDER --judge JUDGE  pictures made elsewhere: RESULTS/ui_edit/0.png, the first task of
                                                                        that list, or RESULTS/ui_edit/NAME.png; travel_plan_, process_plan_
                                                                        and ui_, with gen or edit, is what lists are called there

A try that costs nothing is `--model copy --judge constant/max`: a model that returns the picture it is given, and a judge that gives full
marks to all. It scores Cor 0, Vis 1 and Ef 1 in editing, and 0 in generation, where there is no picture to return.
"""


def build_tasks() -> list[PlanVizTask]:
    walk = ((80, 440), (300, 250), (600, 110))
    after = {**SWITCHES, "Bluetooth": True, "Location": False}
    return [
        PlanVizTask(
            "route",
            "gen",
            "Draw a simple map for a one-day food walk through Lyon with four stops, and show in which order to visit them.",
            [
                "A map is drawn, not a list",
                "Four stops are marked, each with a name that can be read",
                "All four are places to eat or buy food",
                "One line joins the stops, and their order can be followed by arrows or numbers",
            ],
            "open",
            "lyon-food-walk",
        ),
        PlanVizTask(
            "route",
            "edit",
            "Draw the shortest walk along the paths from the Gate to the Lake on this map.",
            [
                "A route is drawn on the map",
                "It starts at the Gate",
                "It ends at the Lake",
                "It keeps to the paths all the way",
                "It is the shortest one, past the Rose garden",
            ],
            "closed",
            "gate-to-lake",
            encode_png(draw_park(PLACES, PATHS)),
            encode_png(draw_park(PLACES, PATHS, walk)),
        ),
        PlanVizTask(
            "workflow",
            "gen",
            "Draw a flowchart of how to prepare a team meeting, from finding a date to sending the minutes.",
            [
                "A flowchart is drawn: boxes joined by arrows",
                "It begins with finding a date",
                "An agenda is written before the meeting takes place",
                "The invitation is sent before the meeting takes place",
                "It ends with sending the minutes",
            ],
            "open",
            "team-meeting",
        ),
        PlanVizTask(
            "workflow",
            "edit",
            "Draw a flowchart of the steps that a new user takes on this page to create an account.",
            [
                "A flowchart is drawn: boxes joined by arrows",
                "One step is to enter the e-mail address",
                "A later step is to choose a password",
                "A later step is to enter the name",
                'The last step is to press "Sign up"',
            ],
            "closed",
            "sign-up",
            encode_png(draw_form("Create an account", ["E-mail address", "Password", "Full name"], "Sign up")),
            encode_png(
                draw_flowchart(
                    ["Enter the e-mail address", "Choose a password", "Enter the full name", "Press Sign up"]
                )
            ),
        ),
        PlanVizTask(
            "ui",
            "gen",
            'Draw the sign-in page of a library: a title "City Library", fields for card number and PIN, and a button "Sign in".',
            [
                'The title "City Library" is shown',
                "There is a field for the card number, labelled as such",
                "There is a field for the PIN, labelled as such",
                'The button "Sign in" is shown',
            ],
            "closed",
            "library-sign-in",
        ),
        PlanVizTask(
            "ui",
            "edit",
            "Show this page after Bluetooth was switched on and Location was switched off.",
            [
                "The switch of Bluetooth is on",
                "The switch of Location is off",
                "The switches of Wi-Fi and Dark mode are as they were",
            ],
            "closed",
            "two-switches",
            encode_png(draw_settings("Settings", SWITCHES)),
            encode_png(draw_settings("Settings", after)),
        ),
    ]


def write_template(folder: Path) -> None:
    write_tasks(folder, build_tasks())
    (folder / "README.md").write_text(HOW, encoding="utf-8")
