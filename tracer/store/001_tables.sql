-- Schema 1. Times are whole microseconds since the Unix epoch; `base` is ours, the views in views.sql are the users'.
-- No primary keys and no indexes (they cost more than they give here): the drainer is the only writer.
-- Texts may hold U+FDD0 escapes, see text.py. Columns that end in _json hold JSON text.

create schema base;

create table base.meta (key varchar, value varchar);

-- How far each journal was read. Written in the same transaction as its rows: exactly once.
create table base.journals (name varchar, bytes bigint, lines bigint, header_json varchar);

-- What could not be understood: nothing is thrown away.
create table base.bad_record (source varchar, position bigint, reason varchar, text varchar);

-- Texts, each once. `text` is null when only its hash was recorded or the text never came.
create table base.blobs (id bigint, hash uuid, text varchar, length bigint, role varchar, flags varchar);

create table base.runs (
  id varchar, name varchar, title varchar, agent varchar, project varchar, session varchar, task varchar,
  source varchar, status varchar, reason varchar, started_at bigint, ended_at bigint,
  parent_run varchar, parent_turn integer, parent_call varchar, parent_kind varchar,
  outcome_json varchar, limits_json varchar, tags_json varchar, warnings_json varchar, versions_json varchar,
  git_commit varchar, list_price boolean,
  reported_cost_usd double,   -- what the source says that the run cost, to its last digit
  journal varchar,            -- the writer that last spoke of this run
  assumed_gone boolean,       -- status was set by the drainer, because that writer is gone
  last_at bigint,             -- when the last record of the run was made
  last_turn_at bigint,        -- when its last turn began
  -- derived when rows of the run change:
  turns integer, tool_calls integer, errors integer, models_json varchar,
  input bigint, cache_read bigint, cache_write_5m bigint, cache_write_1h bigint, output bigint, reasoning bigint,
  usage_origin varchar, usage_partial boolean, cost_usd decimal(24, 12), unpriced_turns integer,
  whole_json varchar          -- usage and cost with the inherited turns, for inclusive totals
);

create table base.turns (
  run varchar, number integer, agent varchar, provider varchar, api varchar, mode varchar, stream boolean,
  user_turn boolean, inherited boolean,
  duplicate_of varchar,       -- derived: the run that owns the same response
  request_flags_json varchar, response_flags_json varchar,
  request_model varchar, model varchar, stop_reason varchar, status varchar, error varchar, error_type varchar,
  response_id varchar, request_id varchar, trace_id varchar, span_id varchar, parent_span_id varchar,
  caller varchar, step varchar, url varchar,
  started_at bigint, first_chunk_at bigint, ended_at bigint, parse_status varchar,
  base integer, keep integer, message_count integer,
  system_blob bigint, tools_blob bigint, params_blob bigint, response_blob bigint,
  text varchar, thinking varchar,
  input bigint, cache_read bigint, cache_write_5m bigint, cache_write_1h bigint, output bigint, reasoning bigint,
  usage_origin varchar, usage_partial boolean, usage_json varchar, reported_cost_usd double,
  -- derived:
  generate_ms double, parse_ms double, execute_ms double, resume_ms double,
  cost_usd decimal(24, 12), price_source varchar, price_matched varchar
);

create table base.calls (
  run varchar, turn integer, position integer, id varchar, name varchar, listed boolean,
  arguments_raw varchar, valid boolean, invalid_reason varchar, origin varchar, side_effect varchar, loop_key varchar,
  -- measured, by a wrapped tool:
  measured_start bigint, measured_end bigint, returned_json varchar, returned_digest varchar, returned_length bigint,
  returned_error boolean, returned_class varchar, returned_state varchar,
  -- as the model saw it, inside a message of a later request:
  seen_at bigint, seen_blob bigint, seen_path varchar, seen_error boolean, seen_class varchar,
  seen_digest varchar, seen_length bigint,
  -- derived:
  state varchar, started_at bigint, ended_at bigint, timing varchar, is_error boolean, error_class varchar,
  child_run varchar
);

create table base.attempts (
  run varchar, turn integer, number integer, status integer, error varchar, error_type varchar, wait_ms double,
  started_at bigint, ended_at bigint, request_id varchar, headers_json varchar
);

-- Which blob stood at which place of the request, from turn to turn; last_turn null: still there.
create table base.spans (run varchar, position integer, blob bigint, first_turn integer, last_turn integer);

create table base.chunks (run varchar, turn integer, attempt integer, seq integer, parts_json varchar, altered boolean);

create table base.events (run varchar, turn integer, happened_at bigint, kind varchar, detail_json varchar);

-- Facts that readers work out (findings, cycles), with the version of what made them.
create table base.derived (run varchar, turn integer, kind varchar, version varchar, value_json varchar);
