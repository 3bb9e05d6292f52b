-- Schema 3: what a replay needs to answer as it was: refused bodies, the class of a tool's exception, what its function gave.

alter table base.attempts add column body varchar;            -- of a refused answer, at most 64 KB
alter table base.calls add column returned_type varchar;      -- module.QualName of the exception
alter table base.calls add column returned_as varchar;        -- coroutine, generator, ...: where the result came later
