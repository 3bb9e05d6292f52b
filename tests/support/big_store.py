"""A store of many runs made inside DuckDB: coherent rows of any number of turns in seconds, for measurements.

Each run: a question, turns with calls of tools whose results come in the next request, a last word. The rows stand in
the order in which they would have been drained, under ids that sort in none.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from looptape.tracer.store import open_store
from looptape.tracer.store.rows import Connection

TURNS = 50
"""Turns of a run; all but the last call tools: the first six times, the others three times."""
NEEDLE = "ERR_QUOTA_7731"
"""Stands in one result of every 500th run."""
MODELS = ("claude-sonnet-4-5", "claude-opus-4-5", "claude-haiku-4-5", "gpt-4o", "gpt-4o-mini")
TOOLS = ("read_file", "grep", "bash", "edit", "list_files", "search", "fetch", "write_file")


@dataclass(frozen=True, slots=True)
class Size:
    """How many runs, and about how many bytes a tool result has."""

    runs: int
    result_bytes: int = 380

    @property
    def turns(self) -> int:
        """Turns in all."""
        return self.runs * TURNS

    @property
    def calls(self) -> int:
        """Tool calls in all."""
        return self.runs * 3 * TURNS


def make(home: Path, size: Size) -> float:
    """Fills a new store in this folder; returns the seconds that it took."""
    began = time.perf_counter()
    with open_store(home) as store:
        store.write(lambda con: _fill(con, size))
    return time.perf_counter() - began


def run_id(number: int) -> str:
    """The id of the run of that number, from 0: the oldest."""
    import hashlib

    return hashlib.md5(f"run {number}".encode(), usedforsecurity=False).hexdigest()[:16]


def _fill(con: Connection, size: Size) -> None:
    con.execute("create temp macro listed(texts, i) as texts[(i % len(texts)) + 1]")
    con.execute("create temp macro run_name(i) as left(md5('run ' || i), 16)")
    # a result: a line of words, then lines that no two results share
    con.execute(f"""
      create temp macro said(g, j, most) as
        'order A-' || (g * 7 + j) || ' of customer ' || (g % 4711) || ' was paid, its state is settled; the next page follows'
        || case when g // {TURNS} % 500 = 0 and g % {TURNS} = 6 and j = 0 then ' {NEEDLE}' else '' end
        || array_to_string(list_transform(range((most - 90) // 34), lambda n: chr(10) || md5(g || '/' || j || '/' || n)), '')
    """)
    con.execute("create temp macro many(t) as case when t = 0 then 6 when t = 49 then 0 else 3 end")
    for text in (_TURNS_SQL, _CALLS_SQL, _BLOBS_SQL, _QUESTIONS_SQL, _SPANS_SQL, _RUNS_SQL):
        con.execute(
            text.format(
                runs=size.runs,
                turns=size.turns,
                calls=size.calls,
                bytes=size.result_bytes,
                tools=list(TOOLS),
                models=list(MODELS),
                each=TURNS,
                first=3 * size.turns + 1,
            )
        )


# g numbers all turns from 0, i the runs, t the turns of a run; a turn has the blobs 3g+1 (response), 3g+2 (what the
# assistant said, as a message) and 3g+3 (its results, as a message)
_STEP = 700_000_000  # µs between runs: 20,000 of them fill half a year
_AT = f"1764424923000000 + (g // {{each}}) * {_STEP} + (g % {{each}}) * 9000000"
_TURNS_SQL = f"""
  insert into base.turns by name
  select run_name(g // {{each}}) as run, g // {{each}} + 1 as place, (g % {{each}} + 1)::integer as number, 'anthropic' as provider, 'anthropic.messages' as api,
    'full' as mode, true as stream, g % {{each}} = 0 as user_turn, false as inherited,
    listed({{models}}, g // {{each}} + g // {{each}} // 7) as request_model, listed({{models}}, g // {{each}} + g // {{each}} // 7) as model,
    case when g % {{each}} = 49 then 'end_turn' else 'tool_use' end as stop_reason, 'ok' as status, 'msg_' || g as response_id,
    'agent.py:' || (g % 90) as caller, {_AT} as started_at, {_AT} + 400000 as first_chunk_at, {_AT} + 3000000 as ended_at,
    'ok' as parse_status, case when g % {{each}} > 0 then (g % {{each}})::integer end as base, (2 * (g % {{each}}) - 1)::integer as keep,
    (2 * (g % {{each}}) + 1)::integer as message_count, 3 * g + 1 as response_blob,
    'I look at part ' || (g * 31 % 9973) || ' next, then at what follows from it.' as text,
    case when g % 3 = 0 then 'It may be in part ' || (g * 31 % 9973) || ', or in none of them.' end as thinking,
    (300 + g % 700)::bigint as input, (2000 * (g % {{each}}))::bigint as cache_read, (900)::bigint as cache_write_5m, 0::bigint as cache_write_1h,
    (100 + g % 400)::bigint as output, 'reported' as usage_origin, false as usage_partial,
    3000.0 as generate_ms, 1.0 as parse_ms, 5000.0 as execute_ms, 1.0 as resume_ms,
    ((300 + g % 700) * 3 + 600 * (g % {{each}}) + 900 * 3.75 + (100 + g % 400) * 15)::decimal(24, 12) / 1000000 as cost_usd,
    'genai-prices 1' as price_source, 'claude-sonnet-4-5' as price_matched
  from range({{turns}}) as r(g)
"""
_CALLS_SQL = f"""
  insert into base.calls by name
  with placed as (
    select c // 150 as i, case when c % 150 < 6 then 0 else (c % 150 - 6) // 3 + 1 end as t,
      case when c % 150 < 6 then c % 150 else (c % 150 - 6) % 3 end as j
    from range({{calls}}) as r(c)
  ), counted as (select *, i * {{each}} + t as g from placed)
  select run_name(i) as run, i + 1 as place, (t + 1)::integer as turn, (j + 1)::integer as position, 'c' || g || '_' || j as id,
    listed({{tools}}, g * 5 + j * 3) as name, true as listed,
    '{{{{"path":"src/part_' || (hash(g, j) % 40) || '.py","line":' || (g % 7) || '}}}}' as arguments_raw, true as valid, 'live' as origin,
    {_AT} + 8000000 as seen_at, 3 * g + 3 as seen_blob, '$.content[' || j || '].content' as seen_path, g % 29 = 0 as seen_error,
    md5(g || ' ' || j) as seen_digest, {{bytes}} as seen_length, 'done' as state, {_AT} + 3000000 as started_at,
    {_AT} + 8000000 as ended_at, 'inferred' as timing, g % 29 = 0 as is_error
  from counted
"""
_CALL_BLOCKS = """array_to_string(list_transform(range(many(g % {each})), lambda j: ',{{"type":"tool_use","id":"c' || g || '_' || j
  || '","name":"' || listed({tools}, g * 5 + j * 3) || '","input":{{"path":"src/part_' || (hash(g, j) % 40) || '.py","line":' || (g % 7) || '}}}}'), '')"""
_CONTENT = (
    """'[{{"type":"text","text":"I look at part ' || (g * 31 % 9973) || ' next, then at what follows from it."}}' || """
    + _CALL_BLOCKS
    + " || ']'"
)
_BLOBS_SQL = f"""
  insert into base.blobs
  with made as (
    select b + 1 as id, b % 3 as kind, b // 3 as g from range(3 * {{turns}}) as r(b)
  ), told as (
    select id, case kind when 2 then 'user' else 'assistant' end as role,
      case kind
        when 0 then '{{{{"id":"msg_' || g || '","type":"message","role":"assistant","content":' || {_CONTENT} || '}}}}'
        when 1 then '{{{{"role":"assistant","content":' || {_CONTENT} || '}}}}'
        else '{{{{"role":"user","content":[' || array_to_string(list_transform(range(many(g % {{each}})), lambda j:
          '{{{{"type":"tool_result","tool_use_id":"c' || g || '_' || j || '","content":'
          || to_json(said(g, j, {{bytes}}))::varchar || '}}}}'), ',') || ']}}}}'
      end as text
    from made
  )
  select id, md5('blob ' || id)::uuid as hash, text, length(text) as length, role, null as flags from told
"""
_QUESTIONS_SQL = """
  insert into base.blobs
  select {first} + i as id, md5('question ' || i)::uuid, q, length(q), 'user', null
  from (select i, '{{"role":"user","content":"Find the fault in job ' || i || ' and say where it is."}}' as q from range({runs}) as r(i))
"""
_SPANS_SQL = """
  insert into base.spans
  select run_name(i), p::integer + 1, case when p = 0 then {first} + i when p % 2 = 1 then 3 * (i * {each} + p // 2) + 2
    else 3 * (i * {each} + p // 2 - 1) + 3 end, case when p = 0 then 1 else (p + 1) // 2 + 1 end, null, i + 1
  from (select n // (2 * {each} - 1) as i, n % (2 * {each} - 1) as p from range({runs} * (2 * {each} - 1)) as r(n))
"""
_RUNS_SQL = """
  insert into base.runs by name
  with totals as (
    select run, count(*) as turns, min(started_at) as first, max(ended_at) as last, any_value(model) as model, any_value(place) as place, sum(input) as input,
      sum(cache_read) as cache_read, sum(cache_write_5m) as cache_write_5m, sum(output) as output, sum(cost_usd) as cost
    from base.turns group by run
  ), failed as (select run, count(*) as calls, count(*) filter (is_error) as errors from base.calls group by run)
  select t.run as id, t.place, 'job ' || (hash(t.run) % 40) as name, 'Find the fault in a job' as title, 'finder' as agent, '/home/dev/project' as project,
    'task ' || (hash(t.run) % 25) as task, 'sdk' as source, 'completed' as status, 'end_turn' as reason, t.first as started_at,
    t.last as ended_at, '{{"customer":"' || (hash(t.run) % 300) || '"}}' as tags_json, false as list_price, t.last as last_at, t.last as last_turn_at,
    t.turns::integer as turns, f.calls::integer as tool_calls, f.errors::integer as errors, '["' || t.model || '"]' as models_json,
    t.input::bigint as input, t.cache_read::bigint as cache_read, t.cache_write_5m::bigint as cache_write_5m, 0::bigint as cache_write_1h,
    t.output::bigint as output, 'reported' as usage_origin, false as usage_partial, t.cost::decimal(24, 12) as cost_usd, 0 as unpriced_turns,
    0 as assumed_turns, '["genai-prices 1"]' as price_sources_json, '{{"pass":null}}' as versions_json,
    json_object('input', t.input::bigint, 'cache_read', t.cache_read::bigint, 'cache_write_5m', t.cache_write_5m::bigint, 'cache_write_1h', 0,
      'output', t.output::bigint, 'reasoning', null, 'unpriced', 0, 'origin', 'reported', 'partial', false,
      'cost_usd', t.cost::decimal(24, 12)::varchar)::varchar as whole_json
  from totals as t join failed as f on f.run = t.run order by t.first
"""


def make_list(home: Path, runs: int, whole: int = 1000) -> float:
    """A store whose list is long: ``whole`` runs as `make` fills them, and older ones of ten turns without texts.

    Returns the seconds that it took. Names, models, projects, outcomes and states vary; every 50th run is a fork.
    """
    began = time.perf_counter()
    make(home, Size(whole))
    with open_store(home) as store:
        copies = range(1, -(-runs // whole))
        for at in range(0, len(copies), 20):
            some = copies[at : at + 20]
            store.write(lambda con, some=some: _copy(con, list(some), whole))  # type: ignore[misc]
        for text in (_VARIED_SQL, _FORKS_SQL):
            store.write(lambda con, text=text: con.execute(text))  # type: ignore[misc]
    return time.perf_counter() - began


def _copy(con: Connection, copies: list[int], whole: int) -> None:
    for text in _COPIES_SQL:
        con.execute(text.format(copies=copies, whole=whole, back=whole * _STEP))


_COPY_ID = "left(md5({} || ' ' || k), 16)"
_COPIES_SQL = (
    f"""insert into base.turns by name select t.* replace ({_COPY_ID.format("t.run")} as run, t.place + k * {{whole}} as place,
      t.started_at - k * {{back}} as started_at, t.ended_at - k * {{back}} as ended_at, null as response_blob)
    from (select * from base.turns where place <= {{whole}} and number <= 10) as t, (select unnest({{copies}}) as k) as c
    order by k, t.place, t.number""",
    f"""insert into base.calls by name select t.* replace ({_COPY_ID.format("t.run")} as run, t.place + k * {{whole}} as place,
      null as seen_blob, null as seen_path)
    from (select * from base.calls where place <= {{whole}} and turn <= 10) as t, (select unnest({{copies}}) as k) as c
    order by k, t.place, t.turn, t.position""",
    f"""insert into base.runs by name select t.* replace ({_COPY_ID.format("t.id")} as id, t.place + k * {{whole}} as place,
      t.started_at - k * {{back}} as started_at, t.ended_at - k * {{back}} as ended_at, t.last_at - k * {{back}} as last_at,
      t.last_turn_at - k * {{back}} as last_turn_at, 10 as turns, 33 as tool_calls)
    from (select * from base.runs where place <= {{whole}}) as t, (select unnest({{copies}}) as k) as c order by k, t.place""",
)
_VARIED_SQL = """
  update base.runs set project = '/home/dev/project-' || (place % 7), agent = 'agent ' || (place % 5),
    status = case place % 11 when 3 then 'failed' when 7 then 'limit' else 'completed' end,
    reason = case place % 11 when 3 then 'APIStatusError: 529 overloaded' when 7 then 'at the turn limit' else reason end,
    errors = case when place % 3 = 0 then errors else 0 end,
    outcome_json = case place % 4 when 0 then '{"verdict":"pass"}' when 1 then '{"verdict":"fail"}' end,
    parent_turn = case when place % 50 = 0 then 3 end, parent_kind = case when place % 50 = 0 then 'fork' end
"""
_FORKS_SQL = """
  update base.runs set parent_run = k.id from (select id, place from base.runs) as k
  where base.runs.place % 50 = 0 and k.place = base.runs.place - 1
"""
