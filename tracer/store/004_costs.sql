-- Schema 4: where every figure of money comes from, what was assumed for it, and what the source of a run says itself.

alter table base.turns add column served_json varchar;        -- speed, tier, region: only what is not standard
alter table base.turns add column price_why varchar;          -- why it has no price
alter table base.turns add column price_assumed_json varchar; -- what was taken for granted
-- derived:
alter table base.runs add column assumed_turns integer;       -- priced turns for which something was assumed
alter table base.runs add column price_sources_json varchar;
alter table base.runs add column reported_turns integer;      -- own turns whose source says what they cost
alter table base.runs add column reported_turns_usd double;
alter table base.runs add column difference_usd double;       -- our figure less the reported one, where both are known
