"""A judge that reads pixels: it answers each benchmark's questions from the image itself and the dataset's sidecar. A
file per benchmark."""
