"""A folder to fill with own tasks: one example of each kind, with images, and a README that says how."""

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
README = """# Tasks for PlanViz, to fill in

One list for each kind of task, under the names of the benchmark's own code. Each has one example: change it, copy it,
or delete it. You may delete a list that you have no tasks for. Names of lists and fields must stay as they are.

| kind | list | images |
| --- | --- | --- |
| a route, drawn from text | map/generation/map_gen.json | none |
| a route, drawn on a map | map/editing/map_editing_prompts.json | map/editing/imgs, map/editing/refs |
| a workflow, drawn from text | diagram/generation/diagram_gen.json | none |
| a workflow of a page, or changed | diagram/editing/diagram_edit.json | diagram/editing/imgs, diagram/editing/refs |
| an interface, drawn from text | UI/generation/ui_generation.json | none |
| an interface after it was used | UI/editing/ui_edit.json | UI/editing/imgs, UI/editing/refs |

A task:

| field | what | when |
| --- | --- | --- |
| `prompt` | what the model is asked for, as a person would say it | always |
| `correctness_key_points` | what the image must show: a list of texts, one thing a text | always |
| `image_path` | the image that is edited; the path begins at this folder | editing |
| `ref_image_path` | an image of one correct result; the judge sees it | editing, where you have one |
| `ended` | `closed` if there is one correct result, `open` if there are many | if you want the two compared |
| `name` | a short name of your own, which no other task of its list has | optional |

Reports call a task by its list and its name (`travel_plan_edit-gate-to-lake`), or by a digest if it has none. Images
are PNG, JPEG, WebP or GIF; the suffix may differ from the path.

Good key points:
- One thing each, so that it is met or not: not "the route is right", but "The route starts at the gate", "It passes
  the rose garden".
- About what can be seen. A judge has the image, the prompt and the points, and no other knowledge of what you mean.
- From general ("A flowchart is drawn") to particular ("The third step is to tick the terms").
- Only what the prompt asks for, in words or by common sense: a model cannot know anything else.
- A point that quotes a text, and says no more than that it is there, can be decided without a judge (`--judge ocr`):
  `The words "Sign in" are shown`, `The button "Sign in" is visible`, `The title reads "City Library"`. That judge
  leaves out points that say more.

What is scored, each from 0 to 1:
- Cor: the share of key points that the image meets. An edited image that is nearly its source meets none.
- Vis: how sound the image is; for edits of maps and interfaces how well it keeps what was not to change.
- Ef: whether it keeps to what was asked for.

Then, in the folder above this one (this folder is called FOLDER here):

    # report what is wrong, with file, record and field
    weft data check planviz FOLDER

    # `weft models` lists what MODEL and JUDGE may be
    weft run planviz --data FOLDER --model MODEL --judge JUDGE

    # tables, every image, every point with what the judge saw
    weft report last --open

    # images made elsewhere: RESULTS/ui_edit/0.png, the first task of that list, or RESULTS/ui_edit/NAME.png;
    # lists are called travel_plan_, process_plan_ and ui_ there, with gen or edit
    weft score RESULTS --benchmark planviz --data FOLDER --judge JUDGE

`--model copy --judge constant/max` tries it out for free: a model that returns the image it is given, and a judge that
gives full marks. It scores Cor 0, Vis 1 and Ef 1 in editing, and 0 in generation, where there is no image to return.
"""


def build_tasks() -> list[PlanVizTask]:
    """Return one example of each kind."""
    walk = ((80, 440), (300, 250), (600, 110))
    after = {**SWITCHES, "Bluetooth": True, "Location": False}
    return [
        PlanVizTask(
            "route",
            "gen",
            "Draw a simple map for a one-day food walk through Lyon with four stops, "
            "and show in which order to visit them.",
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
            'Draw the sign-in page of a library: a title "City Library", fields for card number and PIN, '
            'and a button "Sign in".',
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
    """Write the example tasks, their images and the README into a folder."""
    write_tasks(folder, build_tasks())
    (folder / "README.md").write_text(README, encoding="utf-8")
