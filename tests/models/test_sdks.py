"""The providers' own libraries talk to the same fakes as weft's adapters: what a fake says, they read as its service
would have said it.

(Ark's library has 200 MB, xAI's speaks another protocol than its web API: their fakes are held by the documentation
alone.)"""

import base64
import hashlib
import io
import json
from collections.abc import Callable
from typing import Any

import pytest

from fakes import Anthropic, DashScope, Fake, Gemini, Images, OpenAI, OpenRouter, Responses
from server import data_url, drawn

PICTURE = drawn("given", 32)
DIGEST = hashlib.sha256(PICTURE).hexdigest()
SCHEMA = {"type": "object", "properties": {"score": {"type": "integer"}, "reasoning": {"type": "string"}}}
Stand = Callable[[Fake], Any]


def library(name: str) -> Any:
    return pytest.importorskip(name, reason=f"{name} is not installed (the extra sdks)")


def openai_client(fake: Fake) -> Any:
    return library("openai").OpenAI(base_url=f"{fake.url}/v1", api_key="dummy", max_retries=0)


def test_openai_chat_and_its_refusals(stand: Stand):
    fake = stand(OpenAI())
    client = openai_client(fake)
    content = [{"type": "text", "text": "score"}, {"type": "image_url", "image_url": {"url": data_url(PICTURE)}}]
    told = {"type": "json_schema", "json_schema": {"name": "verdict", "strict": True, "schema": SCHEMA}}
    made = client.chat.completions.create(
        model="m", messages=[{"role": "user", "content": content}], response_format=told
    )
    assert (
        json.loads(made.choices[0].message.content)["score"] == 5
        and fake.seen[0].flow == ["score", DIGEST]
        and made.usage.prompt_tokens == 11
    )
    fake.says = "refused"
    again = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
    assert again.choices[0].message.refusal and again.choices[0].message.content is None
    openai = library("openai")
    for says, error, code in (
        ("rate", openai.RateLimitError, "rate_limit_exceeded"),
        ("quota", openai.RateLimitError, "insufficient_quota"),
    ):
        fake.says = says
        with pytest.raises(error) as caught:
            client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
        assert caught.value.code == code


def test_openai_images_and_edits(stand: Stand):
    fake = stand(Images())
    client = openai_client(fake)
    made = client.images.generate(model="m", prompt="a cat", size="1024x1024", n=1)
    assert base64.b64decode(made.data[0].b64_json) == fake.seen[0].drawing and made.usage.output_tokens == 30
    files = [(f"{name}.png", drawn(name), "image/png") for name in ("one", "two")]
    client.images.edit(model="m", prompt="both", image=files)
    assert fake.seen[1].pictures == [hashlib.sha256(data).hexdigest() for _, data, _ in files]


def test_openai_responses_with_the_image_tool(stand: Stand):
    fake = stand(Responses("both"))
    client = openai_client(fake)
    tools = [{"type": "image_generation", "size": "1024x1024"}]
    first = client.responses.create(model="m", input="a cat", tools=tools, store=True)
    kinds = [item.type for item in first.output]
    assert kinds == ["message", "image_generation_call", "message"] and first.output_text == "hellohello"
    made = base64.b64decode(first.output[1].result)
    client.responses.create(model="m", input="with a hat", tools=tools, previous_response_id=first.id)
    assert fake.seen[1].pictures == [hashlib.sha256(made).hexdigest()]


def test_openai_batches(stand: Stand):
    fake = stand(OpenAI())
    client = openai_client(fake)
    body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
    line = json.dumps({"custom_id": "a", "method": "POST", "url": "/v1/chat/completions", "body": body})
    file = client.files.create(file=("in.jsonl", line.encode()), purpose="batch")
    batch = client.batches.create(input_file_id=file.id, endpoint="/v1/chat/completions", completion_window="24h")
    assert [one.input_file_id for one in client.batches.list(limit=10)] == [file.id] and batch.status == "validating"
    while (batch := client.batches.retrieve(batch.id)).status != "completed":
        pass
    answer = json.loads(client.files.content(batch.output_file_id).text)
    assert answer["custom_id"] == "a" and answer["response"]["body"]["choices"][0]["message"]["content"] == "hello"


def gemini_client(fake: Fake) -> Any:
    genai = library("google.genai")
    return genai.Client(api_key="dummy", http_options=genai.types.HttpOptions(base_url=fake.url, api_version="v1beta"))


def test_gemini_keeps_order_thoughts_and_signatures(stand: Stand):
    fake = stand(Gemini("both"))
    client, types = gemini_client(fake), library("google.genai").types
    config = types.GenerateContentConfig(
        response_modalities=["TEXT", "IMAGE"], image_config=types.ImageConfig(aspect_ratio="3:2"), seed=5
    )
    asked = types.Content(
        role="user", parts=[types.Part(text="a"), types.Part.from_bytes(data=PICTURE, mime_type="image/png")]
    )
    first = client.models.generate_content(model="m", contents=[asked], config=config)
    said = first.candidates[0].content
    assert [bool(part.inline_data) for part in said.parts] == [False, True, False, True]
    assert fake.seen[0].flow == ["a", DIGEST] and (fake.seen[0].seed, fake.seen[0].size) == (5, "3:2")
    hat = types.Content(role="user", parts=[types.Part(text="with a hat")])
    client.models.generate_content(model="m", contents=[asked, said, hat], config=config)
    assert hashlib.sha256(said.parts[1].inline_data.data).hexdigest() in fake.seen[1].pictures
    for part in said.parts:
        part.thought_signature = None
    with pytest.raises(library("google.genai").errors.ClientError, match="missing a thought_signature"):
        client.models.generate_content(model="m", contents=[asked, said, hat], config=config)


def test_gemini_says_why_there_is_no_picture(stand: Stand):
    fake = stand(Gemini())
    client, errors = gemini_client(fake), library("google.genai").errors
    for says, finish in (("nothing", "NO_IMAGE"), ("filtered", "IMAGE_SAFETY"), ("cut", "MAX_TOKENS")):
        fake.says = says
        assert client.models.generate_content(model="m", contents="x").candidates[0].finish_reason.name == finish
    fake.says = "blocked"
    blocked = client.models.generate_content(model="m", contents="x")
    assert blocked.candidates is None and blocked.prompt_feedback.block_reason.name == "PROHIBITED_CONTENT"
    fake.says = "thoughts"
    parts = client.models.generate_content(model="m", contents="x").candidates[0].content.parts
    assert [part.thought for part in parts] == [True, True, None]
    fake.says = "quota"
    with pytest.raises(errors.ClientError) as caught:
        client.models.generate_content(model="m", contents="x")
    assert caught.value.code == 429 and caught.value.status == "RESOURCE_EXHAUSTED"


def test_gemini_batches(stand: Stand):
    fake = stand(Gemini())
    client = gemini_client(fake)
    line = json.dumps({"key": "a", "request": {"contents": [{"role": "user", "parts": [{"text": "hello"}]}]}})
    file = client.files.upload(
        file=io.BytesIO(line.encode()), config={"mime_type": "application/jsonl", "display_name": "weft"}
    )
    batch = client.batches.create(model="m", src=file.name, config={"display_name": file.name})
    assert [one.display_name for one in client.batches.list()] == [file.name]
    while not (batch := client.batches.get(name=batch.name)).done:
        pass
    assert batch.state.name == "JOB_STATE_SUCCEEDED"
    answer = json.loads(client.files.download(file=batch.dest.file_name))
    assert answer["key"] == "a" and answer["response"]["candidates"][0]["content"]["parts"][0]["text"] == "hello"


def test_anthropic_messages(stand: Stand):
    fake = stand(Anthropic())
    anthropic = library("anthropic")
    client = anthropic.Anthropic(base_url=fake.url, api_key="dummy", max_retries=0)
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PICTURE).decode()}
    content = [{"type": "text", "text": "score"}, {"type": "image", "source": source}]
    told = {"format": {"type": "json_schema", "schema": SCHEMA}}
    made = client.messages.create(
        model="m", max_tokens=100, messages=[{"role": "user", "content": content}], output_config=told
    )
    assert (
        json.loads(made.content[0].text)["score"] == 5
        and fake.seen[0].flow == ["score", DIGEST]
        and made.usage.input_tokens == 12
    )
    fake.says = "thoughts"
    assert [
        one.type
        for one in client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}]).content
    ] == [
        "thinking",
        "text",
    ]
    fake.says = "rate"
    with pytest.raises(anthropic.RateLimitError):
        client.messages.create(model="m", max_tokens=9, messages=[{"role": "user", "content": "x"}])


def test_dashscope_at_once_and_as_tasks(stand: Stand, monkeypatch: pytest.MonkeyPatch):
    fake = stand(DashScope())
    dashscope = library("dashscope")
    monkeypatch.setattr(dashscope, "base_http_api_url", f"{fake.url}/api/v1")
    monkeypatch.setattr(dashscope, "api_key", "dummy")
    asked = [{"role": "user", "content": [{"image": data_url(PICTURE)}, {"text": "a hat"}]}]
    made = dashscope.MultiModalConversation.call(
        model="m", messages=asked, n=1, size="1024*768", seed=3, prompt_extend=False
    )
    assert made.status_code == 200 and made.output.choices[0].message.content[0]["image"].startswith(
        f"{fake.url}/files/"
    )
    assert fake.seen[0].flow == [DIGEST, "a hat"] and (fake.seen[0].seed, fake.seen[0].size) == (3, "1024*768")
    task = dashscope.ImageSynthesis.async_call(model="m", prompt="a cat", n=1, size="1024*1024", prompt_extend=False)
    done = dashscope.ImageSynthesis.wait(task)
    assert done.output.task_status == "SUCCEEDED" and done.output.results[0].url.startswith(f"{fake.url}/files/")
    fake.says = "blocked"
    refused = dashscope.MultiModalConversation.call(model="m", messages=asked)
    assert (refused.status_code, refused.code) == (400, "DataInspectionFailed")


def test_openrouter_sends_pictures_beside_the_words(stand: Stand):
    fake = stand(OpenRouter())
    client = library("openrouter").OpenRouter(api_key="dummy", server_url=f"{fake.url}/api/v1", retry_config=None)
    content = [{"type": "text", "text": "a cat"}, {"type": "image_url", "image_url": {"url": data_url(PICTURE)}}]
    asked = [{"role": "user", "content": content}]
    made = client.chat.send(model="m", messages=asked, modalities=["image", "text"], stream=False)
    message = made.choices[0].message
    assert message.content == "here it is" and message.images[0].image_url.url.startswith("data:image/png")
    assert fake.seen[0].flow == ["a cat", DIGEST]
