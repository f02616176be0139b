"""What weft keeps: images by digest, and every call, reply, verdict and annotation. Homes are merged, recovered and
pruned here."""
