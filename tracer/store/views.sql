-- The documented views (docs/schema.md): what `looptape sql` sees. Made anew after every migration.
-- Times are UTC timestamps. Adding columns is free; renaming or removing one is not.

create or replace view main.runs as
select
  id, name, title, agent, project, session, task,
  json_extract_string(outcome_json, '$.verdict') as outcome, outcome_json as outcome_detail,
  source, status, reason,
  make_timestamp(started_at) as started_at, make_timestamp(ended_at) as ended_at,
  turns, tool_calls, errors, models_json::json::varchar[] as models,
  input, cache_read, cache_write_5m, cache_write_1h, output, reasoning, usage_origin as origin, usage_partial as partial,
  cost_usd::double as cost_usd, unpriced_turns, unpriced_turns > 0 as cost_partial, assumed_turns,
  price_sources_json::json::varchar[] as price_sources,
  coalesce(reported_cost_usd, reported_turns_usd) as reported_cost_usd, difference_usd as cost_difference_usd,
  parent_run, parent_turn, parent_call, parent_kind,
  limits_json as limits, tags_json as tags, warnings_json as warnings, versions_json as versions, git_commit, list_price
from base.runs;

create or replace view main.turns as
select
  t.run, t.number, t.agent, t.provider, t.api, t.user_turn,
  t.inherited or t.duplicate_of is not null as inherited, t.duplicate_of,
  list_distinct(list_concat(
    coalesce(t.request_flags_json, '[]')::json::varchar[], coalesce(t.response_flags_json, '[]')::json::varchar[]
  )) as flags,
  coalesce(t.model, t.request_model) as model, t.request_model, t.stop_reason,
  case when t.status = 'open' and r.status <> 'running' then 'interrupted' else t.status end as status,
  t.error, t.error_type, t.response_id, t.request_id, t.trace_id, t.span_id, t.caller, t.step, t.stream, t.mode,
  make_timestamp(t.started_at) as started_at, make_timestamp(t.first_chunk_at) as first_chunk_at,
  make_timestamp(t.ended_at) as ended_at,
  t.generate_ms, t.parse_ms, t.execute_ms, t.resume_ms, t.parse_status,
  t.input, t.cache_read, t.cache_write_5m, t.cache_write_1h, t.output, t.reasoning,
  t.usage_origin as origin, t.usage_partial as partial,
  t.cost_usd::double as cost_usd, t.price_source, t.price_matched, t.price_why,
  t.price_assumed_json::json::varchar[] as price_assumed, t.served_json as served, t.reported_cost_usd,
  t.text, t.thinking, t.message_count, b.text as response
from base.turns as t join base.runs as r on r.id = t.run left join base.blobs as b on b.id = t.response_blob;

create or replace view main.tool_calls as
select
  c.run, c.turn, c.position, c.id, c.name, c.arguments_raw as arguments, c.valid, c.invalid_reason,
  coalesce(try(json_extract_string(b.text, c.seen_path)), c.returned_json) as result,
  c.returned_json as returned,
  coalesce(c.returned_digest, c.seen_digest) as result_digest,
  coalesce(c.returned_length, c.seen_length) as result_length,
  c.is_error, c.error_class,
  case when c.state in ('requested', 'running') and r.status <> 'running' and c.origin <> 'provider' then 'no_result'
    else c.state end as state,
  make_timestamp(c.started_at) as started_at, make_timestamp(c.ended_at) as ended_at,
  (c.ended_at - c.started_at) / 1000.0 as ms, c.timing, c.side_effect, c.origin, c.loop_key, c.child_run,
  c.returned_type as error_type
from base.calls as c join base.runs as r on r.id = c.run left join base.blobs as b on b.id = c.seen_blob;

create or replace view main.messages as
select
  s.run, s.position, s.first_turn, s.last_turn, b.role, b.text as message, b.length, b.flags,
  replace(b.hash::varchar, '-', '') as hash
from base.spans as s join base.blobs as b on b.id = s.blob;

create or replace view main.attempts as
select
  run, turn, number, status, error, error_type, wait_ms, make_timestamp(started_at) as started_at,
  make_timestamp(ended_at) as ended_at, request_id, headers_json as headers, body
from base.attempts;

create or replace view main.events as
select run, turn, make_timestamp(happened_at) as happened_at, kind, detail_json as detail from base.events;
