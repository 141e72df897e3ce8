-- Argo CD's health of a resource of herdkeeper.io, the same for every kind (docs/gitops.md). Argo CD gives it no library but `table`.
-- It agrees with kstatus, which Flux uses, but for what a person stopped: that is Suspended here.
local status = obj.status or {}
if obj.metadata.deletionTimestamp ~= nil then
  return { status = "Progressing", message = "is being deleted" }
end
if status.observedGeneration ~= obj.metadata.generation then
  return { status = "Progressing", message = "the operator has not looked at it yet" }
end

local conditions = {}
for _, condition in ipairs(status.conditions or {}) do
  conditions[condition.type] = condition
end
local function holds(type)
  return conditions[type] ~= nil and conditions[type].status == "True"
end
local function told(health, condition)
  return { status = health, message = condition.reason .. ": " .. condition.message }
end

local stops = { Paused = true, Planned = true, Suspended = true }
local progressing = conditions.Progressing
local stopped = progressing ~= nil and stops[progressing.reason] == true
if holds("Stalled") then
  local health = "Degraded"
  if stopped and conditions.Stalled.reason == progressing.reason then
    health = "Suspended"
  end
  return told(health, conditions.Stalled)
end
if holds("Reconciling") then
  return told("Progressing", conditions.Reconciling)
end
if not holds("Ready") then
  return { status = "Progressing", message = status.message or "it is not Ready" }
end
if stopped then
  return told("Suspended", progressing)
end
return { status = "Healthy", message = status.message }
