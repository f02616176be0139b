"""A judge that reads pixels: it answers each benchmark's questions from the picture itself and the dataset's sidecar.
A file per benchmark."""
