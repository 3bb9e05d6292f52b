-- Schema 2: OpenTelemetry spans and log records as they came. Runs are put together from them (reassemble.py), and again
-- whenever more comes: children arrive before their parents, retries twice, a next turn in another trace.

-- A span, or a log record under a hash of itself. `state`: null ended; 'open' its end has not come yet;
-- 'cut' its writer is gone. `origin`: hash of the resource. A log record outside any trace has one of its own name.
create table base.otlp_spans (
  trace varchar, span varchar, signal varchar, origin varchar, frame bigint, started_at bigint, state varchar,
  conversation varchar, journal varchar, item_json varchar
);

-- What spans have in common: [resource, scope], each once.
create table base.otlp_frames (id bigint, hash varchar, frame_json varchar);

-- `dirty`: something came since runs were last put together. `genai`: model calls may be in it.
create table base.otlp_traces (
  trace varchar, origin varchar, first_at bigint, last_at bigint, seen_at bigint, genai boolean, dirty boolean
);

-- Runs that were put together from spans. `settle_at`: when to look again whether it still runs.
create table base.otlp_runs (run varchar, digest varchar, settle_at bigint);
create table base.otlp_run_traces (run varchar, trace varchar);

-- Spans of model calls that our own transport has recorded: not to be counted again.
create table base.otlp_recorded (trace varchar, span varchar);
