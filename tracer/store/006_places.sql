-- Schema 6: a number for each run that grows as runs come, beside its rows in the large tables. They lie together, so that
-- DuckDB passes over all other row groups by their smallest and largest number; run ids, which are random, tell it nothing.

alter table base.runs add column place bigint;
alter table base.turns add column place bigint;
alter table base.calls add column place bigint;
alter table base.spans add column place bigint;
alter table base.events add column place bigint;
alter table base.chunks add column place bigint;
alter table base.attempts add column place bigint;
update base.runs set place = k.place from (
  select r.id as run, row_number() over (order by t.first nulls last, r.id) as place
  from base.runs as r left join (select run, min(rowid) as first from base.turns group by run) as t on t.run = r.id
) as k where base.runs.id = k.run;
update base.turns set place = r.place from base.runs as r where r.id = base.turns.run;
update base.calls set place = r.place from base.runs as r where r.id = base.calls.run;
update base.spans set place = r.place from base.runs as r where r.id = base.spans.run;
update base.attempts set place = r.place from base.runs as r where r.id = base.attempts.run;
update base.chunks set place = r.place from base.runs as r where r.id = base.chunks.run;
update base.events set place = r.place from base.runs as r where r.id = base.events.run;
