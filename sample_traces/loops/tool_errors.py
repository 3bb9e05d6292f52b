"""Tools that fail in three ways (a rule of the shop, a lost connection, a right that is missing), and a model that copes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from anthropic.types import MessageParam, ToolParam, ToolResultBlockParam

import looptape
from looptape.sample_traces.scripted import call, client, reply


def declared(name: str, description: str, **properties: str) -> ToolParam:
    """A tool as the model is told of it; all its arguments are required."""
    kinds = {key: {"type": kind} for key, kind in properties.items()}
    schema: dict[str, Any] = {"type": "object", "properties": kinds, "required": list(kinds)}
    return {"name": name, "description": description, "input_schema": schema}


TOOLS = [
    declared("get_order", "An order with what was paid for it", order_id="string"),
    declared("refund", "Pay money back to the customer", order_id="string", amount_eur="number"),
    declared("delete_review", "Remove a product review", review_id="string"),
    declared("send_mail", "Write to the customer", to="string", subject="string", body="string"),
]
SYSTEM = "You handle complaints of a ceramics shop. Refund what the rules allow, then write to the customer."
TASK = "Complaint: order A-10317 arrived broken. Jonas Vale wants 89 EUR back, and his bad review r-77 gone."
MAIL = {
    "to": "jonas.vale@example.com",
    "subject": "Your order A-10317",
    "body": "We have paid back 79.90 EUR. The review stays yours: only you can remove it. We are sorry about the vase.",
}

model = looptape.wrap(
    client(
        reply("I look at the order first.", call("get_order", order_id="A-10317"), seconds=1.3),
        reply(
            call("refund", order_id="A-10317", amount_eur=89),
            call("delete_review", review_id="r-77"),
            seconds=1.5,
        ),
        reply(
            "The order was 79.90, so that is what I can pay back.",
            call("refund", order_id="A-10317", amount_eur=79.9),
            seconds=1.7,
        ),
        reply(call("send_mail", **MAIL), seconds=2.1),
        reply("The mail server was busy; once more.", call("send_mail", **MAIL), seconds=1.9),
        reply("Refunded 79.90 EUR and written to Jonas. I had no right to remove the review.", seconds=1.5),
    )
)
mails_tried = 0


@looptape.tool(side_effect="read")
def get_order(order_id: str) -> dict[str, Any]:
    """An order of the shop."""
    time.sleep(0.12)
    return {"id": order_id, "customer": "Jonas Vale", "item": "vase 'Dune'", "paid_eur": 79.9, "state": "delivered"}


@looptape.tool(side_effect="mutate")
def refund(order_id: str, amount_eur: float) -> str:
    """Pays back at most what was paid."""
    time.sleep(0.48)
    if amount_eur > 79.9:
        raise ValueError(f"{amount_eur:.2f} EUR is more than was paid (79.90 EUR)")
    return f"refunded {amount_eur:.2f} EUR for {order_id}, reference RF-5521"


@looptape.tool(side_effect="mutate")
def delete_review(review_id: str) -> str:
    """Is not for agents."""
    raise PermissionError(f"role 'agent' may not delete reviews ({review_id})")


@looptape.tool(side_effect="mutate")
def send_mail(to: str, subject: str, body: str) -> str:
    """Works at the second try."""
    global mails_tried
    mails_tried += 1
    time.sleep(0.9 if mails_tried == 1 else 0.3)
    if mails_tried == 1:
        raise ConnectionError("smtp.example.com: 421 too many connections, try later")
    return "queued"


LIMITS = looptape.Limits(turns=12)
RUN: dict[str, Callable[..., Any]] = {f.__name__: f for f in (get_order, refund, delete_review, send_mail)}


def agent(task: str) -> str:
    """The loop. Every error goes back to the model as a result with is_error."""
    messages: list[MessageParam] = [{"role": "user", "content": task}]
    for _ in range(LIMITS.turns or 1):
        answer = model.messages.create(
            model="claude-sonnet-4-6", max_tokens=1024, system=SYSTEM, tools=TOOLS, messages=messages
        )
        calls = [b for b in answer.content if b.type == "tool_use"]
        if not calls:
            return "".join(b.text for b in answer.content if b.type == "text")
        results: list[ToolResultBlockParam] = []
        for block in calls:
            try:
                out, is_error = str(RUN[block.name](**block.input)), False
            except Exception as error:  # the model is the one to judge what to do about it
                out, is_error = f"{type(error).__name__}: {error}", True
            results.append({"type": "tool_result", "tool_use_id": block.id, "content": out, "is_error": is_error})
        messages += [{"role": "assistant", "content": answer.content}, {"role": "user", "content": results}]
    return "not settled"


def main() -> str:
    """One complaint, settled."""
    with looptape.run(
        "complaint", session="shop", agent="refund-desk", tags={"customer": "vale"}, limits=LIMITS
    ) as run:
        answer = agent(TASK)
        run.outcome("partial", "refunded and written; the review stays", score=0.8)
    return answer


if __name__ == "__main__":
    print(main())
