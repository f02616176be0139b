"""A journal's path in a home, and its tables. Outside of the store, `weft.workspace` opens it."""

from pathlib import Path

JOURNAL = "journal.sqlite"
FOLDERS = ("blobs", "locks", "shown", "cards", "judge-check", "tries", "demo")  # that commands write in a home
VERSION = 5  # journals of other versions are rejected
# Short column names of `replies`: `want` is the modality, `seen` the messages that the model was sent, as JSON, `about`
# the dataset's prompt, reference and gold, as JSON. `runs.begun` is when a run was last started, `voids.run` and
# `voids.round` the run and its round that found a judge's answer unusable. `features` is what was computed from images,
# by their digests: it can always be computed anew.
SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
  id INTEGER PRIMARY KEY, key TEXT NOT NULL, request_digest TEXT NOT NULL, run TEXT NOT NULL, role TEXT NOT NULL,
  endpoint TEXT NOT NULL, model TEXT NOT NULL, served TEXT NOT NULL, request TEXT NOT NULL, outcome TEXT NOT NULL,
  reply TEXT NOT NULL, raw TEXT NOT NULL, tokens_in INTEGER NOT NULL, tokens_out INTEGER NOT NULL, cost REAL,
  latency REAL NOT NULL, attempts INTEGER NOT NULL, at REAL NOT NULL);
CREATE INDEX IF NOT EXISTS calls_by_key ON calls (key);
CREATE INDEX IF NOT EXISTS calls_by_run ON calls (run);
CREATE TABLE IF NOT EXISTS voids (
  call INTEGER NOT NULL, run TEXT NOT NULL, round INTEGER NOT NULL, reason TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS voids_by_call ON voids (call);
CREATE TABLE IF NOT EXISTS runs (
  id TEXT PRIMARY KEY, manifest TEXT NOT NULL, round INTEGER NOT NULL, state TEXT NOT NULL, started REAL NOT NULL,
  ended REAL, left_out TEXT NOT NULL DEFAULT '[]', benchmark TEXT NOT NULL DEFAULT '', begun REAL NOT NULL DEFAULT 0,
  data TEXT NOT NULL DEFAULT '', names TEXT NOT NULL DEFAULT '{}',
  gist TEXT NOT NULL DEFAULT '{}', shards TEXT NOT NULL DEFAULT '{}', samples INTEGER, turns INTEGER);
CREATE TABLE IF NOT EXISTS replies (
  run TEXT NOT NULL, sample TEXT NOT NULL, turn INTEGER NOT NULL, position INTEGER NOT NULL, groups TEXT NOT NULL,
  want TEXT NOT NULL, seen TEXT NOT NULL, reply TEXT NOT NULL, about TEXT NOT NULL DEFAULT '{}',
  PRIMARY KEY (run, sample, turn));
CREATE TABLE IF NOT EXISTS verdicts (
  run TEXT NOT NULL, sample TEXT NOT NULL, turn INTEGER NOT NULL, metric TEXT NOT NULL,
  variant TEXT NOT NULL DEFAULT '', verdict TEXT NOT NULL, PRIMARY KEY (run, sample, turn, metric, variant));
CREATE TABLE IF NOT EXISTS traces (
  run TEXT NOT NULL, sample TEXT NOT NULL, turn INTEGER NOT NULL, trace TEXT NOT NULL,
  PRIMARY KEY (run, sample, turn, trace));
CREATE TABLE IF NOT EXISTS studies (id TEXT PRIMARY KEY, run TEXT NOT NULL, made REAL NOT NULL, settings TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS ratings (
  run TEXT NOT NULL, study TEXT NOT NULL, item TEXT NOT NULL, rater TEXT NOT NULL, verdicts TEXT NOT NULL,
  answer TEXT NOT NULL, at REAL NOT NULL, seconds REAL NOT NULL, attention INTEGER NOT NULL,
  PRIMARY KEY (run, study, item, rater));
CREATE TABLE IF NOT EXISTS tickets (
  key TEXT PRIMARY KEY, ticket TEXT NOT NULL, endpoint TEXT NOT NULL, at REAL NOT NULL);
CREATE TABLE IF NOT EXISTS features (
  digest TEXT NOT NULL, kind TEXT NOT NULL, version TEXT NOT NULL, value TEXT NOT NULL,
  PRIMARY KEY (digest, kind, version)) WITHOUT ROWID;
"""


def journal_file(home: str | Path) -> Path:
    """Return the path of a home's journal."""
    return Path(home) / JOURNAL
