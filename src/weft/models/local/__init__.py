"""Open weights on this machine's own processors and GPUs (extra `local`): classes of transformers (`hf/`) and pipelines
of diffusers (`diffusers/`). torch and its friends are imported when a model is made, weights are loaded when its first
call comes."""
