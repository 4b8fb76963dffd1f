import { useApp } from "../context.js";
import type { RequestsPart } from "../router.js";
import { willPause } from "./banner-state.js";
import { AutoApplyBanner } from "./auto-apply.js";
import { IdleBanner } from "./banner.js";
import { CostView } from "./cost-view.js";
import { useFollowing } from "./following.js";
import { RequestLog } from "./log.js";
import "./request.css";
import { useModels } from "./shared.js";
import { ConnectionState, Disabled, Waiting } from "./states.js";
import { SubagentMonitor } from "./subagent-monitor.js";
import { RequestParts } from "./request-parts.js";

/** The page of requests: the editor without a request, the log, the cost, or the monitor of subagents. */
export function RequestsView({ part = "editor" }: { part?: RequestsPart }) {
  return (
    <>
      <RequestParts class="in-page" />
      {part === "editor" ? (
        <IdleEditor />
      ) : (
        <div class="requests-part" tabIndex={-1}>
          {part === "log" && <RequestLog />}
          {part === "cost" && <CostView />}
          {part === "subagents" && <SubagentMonitor />}
        </div>
      )}
    </>
  );
}

/** The editor while no request is paused. A paused one is shown at once. */
function IdleEditor() {
  const { router } = useApp();
  const models = useModels();
  const open = (request: bigint) => router.go({ view: "request", request });
  const { choices } = useFollowing(models, null, open);
  if (models.modes.isDisabled.value) return <Disabled />;
  const problem = models.modes.problem.value;
  return (
    <div class="request-editor">
      <IdleBanner
        modes={models.modes}
        choices={choices}
        onChoose={(choice) => choice.request !== null && open(choice.request)}
      />
      <AutoApplyBanner modes={models.modes} session={undefined} />
      <ConnectionState />
      {problem !== null && (
        <p class="request-failure problem" role="alert">
          {problem}
        </p>
      )}
      <Waiting isPausing={willPause(models.modes.stateOf(undefined))} />
    </div>
  );
}
