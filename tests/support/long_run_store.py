"""A store with one run of tens of thousands of turns, made inside DuckDB in seconds: for measurements of its screens.

Every turn calls one tool whose result comes in the next request; every 97th result is an error, a user speaks every
1,000 turns, and the last twelve turns are the same call with the same result.
"""

from __future__ import annotations

import time
from pathlib import Path

from looptape.tracer.store import open_store
from looptape.tracer.store.rows import Connection

RUN = "30000000000000aa"
NEEDLE = "ERR_QUOTA_7731"
"""Stands in the result of the turn before the last twelve."""
TOOLS = ("read_file", "grep", "bash", "edit", "list_files")
CYCLE = 12


def make(home: Path, turns: int = 30_000) -> float:
    """Fills a new store in this folder with the run ``RUN``; returns the seconds that it took."""
    began = time.perf_counter()
    home.mkdir(parents=True, exist_ok=True)
    with open_store(home) as store:
        store.write(lambda con: _fill(con, turns))
    return time.perf_counter() - began


def _fill(con: Connection, turns: int) -> None:
    for text in (_TURNS, _CALLS, _ATTEMPTS, _BLOBS, _QUESTION, _SPANS, _RUN):
        con.execute(text.format(run=RUN, turns=turns, tools=list(TOOLS), ends=turns - CYCLE, needle=NEEDLE))


# g numbers the turns from 0; a turn has the blobs 3g+1 (response), 3g+2 (what was said, as a message), 3g+3 (its result)
_AT = "1764424923000000 + g * 9000000"
_PATH = "case when g >= {ends} then 'src/same.py' else 'src/part_' || g || '.py' end"
_TOOL = "case when g >= {ends} then 'bash' else {tools}[(g * 31 % 5)::bigint + 1] end"
_RESULT = """case when g >= {ends} then 'Error: no such file' when g = {ends} - 1 then '{needle} at line 7'
  when g % 97 = 96 then 'Error: cannot read part ' || g else 'part ' || g || ' holds ' || md5(g::varchar) end"""
_FAILED = "(g >= {ends} or g % 97 = 96)"
_TURNS = f"""
  insert into base.turns by name
  select '{{run}}' as run, 1 as place, (g + 1)::integer as number, 'anthropic' as provider, 'anthropic.messages' as api,
    'full' as mode, true as stream, g % 1000 = 0 as user_turn, false as inherited, 'claude-sonnet-4-5' as request_model,
    'claude-sonnet-4-5' as model, case when g = {{turns}} - 1 then 'end_turn' else 'tool_use' end as stop_reason,
    'ok' as status, 'msg_' || g as response_id, 'agent.py:88' as caller, {_AT} as started_at, {_AT} + 400000 as first_chunk_at,
    {_AT} + 3000000 as ended_at, 'ok' as parse_status, case when g > 0 then g::integer end as base, (2 * g - 1)::integer as keep,
    (2 * g + 1)::integer as message_count, 3 * g + 1 as response_blob, 'I look at part ' || g || ' next.' as text,
    (300 + g % 700)::bigint as input, (4000 + 150 * (g % 1000))::bigint as cache_read, 900::bigint as cache_write_5m,
    0::bigint as cache_write_1h, (100 + g % 400)::bigint as output, 'recorded' as usage_origin, false as usage_partial,
    (1000 + g * 377 % 3000)::double as generate_ms, 1.0 as parse_ms, (g * 131 % 5000)::double as execute_ms, 1.0 as resume_ms,
    (0.004 + (g % 1000) * 0.00005)::decimal(24, 12) as cost_usd, 'genai-prices 1' as price_source,
    'claude-sonnet-4-5' as price_matched
  from range({{turns}}) as r(g)
"""
_CALLS = f"""
  insert into base.calls by name
  select '{{run}}' as run, 1 as place, (g + 1)::integer as turn, 1 as position, 'c' || g as id, {_TOOL} as name, true as listed,
    '{{{{"path":"' || {_PATH} || '"}}}}' as arguments_raw, true as valid, 'live' as origin, {_AT} + 8000000 as seen_at,
    3 * g + 3 as seen_blob, '$.content[0].content' as seen_path, {_FAILED} as seen_error, md5({_RESULT}) as seen_digest,
    length({_RESULT}) as seen_length, 'done' as state, {_AT} + 3000000 as started_at, {_AT} + 8000000 as ended_at,
    'inferred' as timing, {_FAILED} as is_error
  from range({{turns}} - 1) as r(g)
"""
_ATTEMPTS = """
  insert into base.attempts by name
  select '{run}' as run, 1 as place, (g + 1)::integer as turn, 1 as number, 200 as status, 0.0 as wait_ms
  from range({turns}) as r(g)
"""
_SAID = f"""'[{{{{"type":"text","text":"I look at part ' || g || ' next."}}}},{{{{"type":"tool_use","id":"c' || g || '","name":"'
  || {_TOOL} || '","input":{{{{"path":"' || {_PATH} || '"}}}}}}}}]'"""
_BLOBS = f"""
  insert into base.blobs
  with made as (select b + 1 as id, b % 3 as kind, b // 3 as g from range(3 * {{turns}}) as r(b)), told as (
    select id, case kind when 2 then 'user' else 'assistant' end as role, case kind
      when 0 then '{{{{"id":"msg_' || g || '","type":"message","role":"assistant","content":' || {_SAID} || '}}}}'
      when 1 then '{{{{"role":"assistant","content":' || {_SAID} || '}}}}'
      else '{{{{"role":"user","content":[{{{{"type":"tool_result","tool_use_id":"c' || g || '","content":' || to_json({_RESULT})::varchar
        || '}}}}]}}}}' end as text
    from made
  ) select id, md5('blob ' || id)::uuid as hash, text, length(text) as length, role, null as flags from told
"""
_QUESTION = """
  insert into base.blobs select 3 * {turns} + 1, md5('question')::uuid, q, length(q), 'user', null
  from (select '{{"role":"user","content":"Find the fault and say where it is."}}' as q)
"""
_SPANS = """
  insert into base.spans by name
  select '{run}' as run, 1 as place, (p + 1)::integer as position,
    case when p = 0 then 3 * {turns} + 1 when p % 2 = 1 then 3 * (p // 2) + 2 else 3 * (p // 2 - 1) + 3 end as blob,
    case when p = 0 then 1 else ((p + 1) // 2 + 1)::integer end as first_turn, null::integer as last_turn
  from range(2 * {turns} - 1) as r(p)
"""
_RUN = """
  insert into base.runs by name
  select '{run}' as id, 1 as place, 'fault-finder' as name, 'finder' as agent, '/home/dev/project' as project, 'sdk' as source,
    'completed' as status, 'end_turn' as reason, min(started_at) as started_at, max(ended_at) as ended_at, false as list_price,
    max(ended_at) as last_at, max(started_at) as last_turn_at, count(*)::integer as turns, (count(*) - 1)::integer as tool_calls,
    (select count(*) from base.calls where is_error)::integer as errors, '["claude-sonnet-4-5"]' as models_json,
    sum(input)::bigint as input, sum(cache_read)::bigint as cache_read, sum(cache_write_5m)::bigint as cache_write_5m,
    0::bigint as cache_write_1h, sum(output)::bigint as output, 'recorded' as usage_origin, false as usage_partial,
    sum(cost_usd)::decimal(24, 12) as cost_usd, 0 as unpriced_turns
  from base.turns where run = '{run}'
"""
