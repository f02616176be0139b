"""What a reply that is an error means: what it says, whether the content was turned away, and whether another try is worth anything.

Servers say it in many shapes, and some with the status 200. Content that was turned away is an outcome, and never tried again; a rate is
waited out, for as long as the server asks; a quota that is used up ends the run, since every further call would fail as well.
"""

import email.utils
import math
import re
import time
from collections.abc import Mapping
from typing import Any, cast

from weft.models.endpoint import DENIED, FATAL, NO, TRANSIENT, Retry
from weft.untrusted import fields

REFUSALS = ("content_policy", "moderation", "content_filter", "safety", "sensitivecontent", "datainspectionfailed", "image_content_policy")
QUOTA = ("insufficient_quota", "credit_balance", "spend", "billing", "quota_exceeded", "quotaexceeded", "arrearage", "overdue")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds that the endpoint asked us to wait, from any of the headers in use."""
    try:
        if "retry-after-ms" in headers:
            delay = max(0.0, float(headers["retry-after-ms"]) / 1000)
            return delay if math.isfinite(delay) else None
        value = headers.get("retry-after")
        if value is None:
            return None
        if re.fullmatch(r"[0-9]+(\.[0-9]+)?", value):
            return float(value)
        return max(0.0, email.utils.parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


def _told_delay(body: Any) -> float | None:
    """Google's way to say how long to wait: RetryInfo among the error's details."""
    details: Any = fields(fields(body).get("error")).get("details")
    for detail in cast(list[Any], details) if isinstance(details, list) else []:
        match = re.fullmatch(r"(\d+(?:\.\d+)?)s", str(fields(detail).get("retryDelay", "")))
        if match:
            return float(match.group(1))
    return None


def _is_spent(body: Any) -> bool:
    """Whether an error says in its details, or in words alone, that nothing is left: Google's quota of a day, Anthropic's credit."""
    details: Any = fields(fields(body).get("error")).get("details")
    for detail in cast(list[Any], details) if isinstance(details, list) else []:
        violations: Any = fields(detail).get("violations")
        for one in cast(list[Any], violations) if isinstance(violations, list) else []:
            if "perday" in str(fields(one).get("quotaId", "")).lower():
                return True
    return "credit balance is too low" in error_facts(body)[0].lower()


def error_facts(body: Any) -> tuple[str, str]:
    """(message, codes) of an error body in any of the shapes servers use; both '' when there is no error in it."""
    said = fields(body)
    error: Any = said.get("error") or said.get("detail") or (said if "message" in said and said.get("code") else None)
    if not error:
        return "", ""
    facts = fields(error)
    if not facts:
        return str(error), ""
    metadata = fields(facts.get("metadata"))
    codes = [facts.get("code"), facts.get("type"), facts.get("status"), metadata.get("error_type")]
    if metadata.get("reasons"):
        codes.append("moderation")
    return str(facts.get("message") or facts), " ".join(str(code) for code in codes if code is not None).lower()


def is_refusal(codes: str) -> bool:
    """Whether the error's own codes say that the content was turned away, whatever the status."""
    return any(word in codes.replace("-", "_") for word in REFUSALS)


def decide(status: int, codes: str, headers: Mapping[str, str], body: Any = None) -> Retry:
    """What an error means for the next try."""
    delay = retry_after(headers)
    if status == 402 and delay is not None:
        return Retry("rate_limit", delay)
    if status == 402 or any(word in codes for word in QUOTA) or _is_spent(body):
        return FATAL
    if status in (401, 403, 404):
        return DENIED
    if status in (429, 503, 529):
        return Retry("rate_limit", delay or _told_delay(body))
    if status in (408, 409, 425) or status >= 500:
        return TRANSIENT
    return NO
