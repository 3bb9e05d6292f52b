-- Schema 5: what a tool's result was in Python where its JSON does not say it.

alter table base.calls add column returned_shape_json varchar;
