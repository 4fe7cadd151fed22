import { ArrowUpToLine, RotateCw } from "lucide-react";
import type { ReactNode } from "react";
import { inWords, post, type Schemas } from "../denizen/api";
import { Badge } from "../ui/Badge";
import { Button } from "../ui/Button";
import { MoreWhenSeen } from "../ui/ShowMore";
import { Empty, ErrorState, Skeleton } from "../ui/States";
import { Time } from "../ui/Time";
import { useToast } from "../ui/Toast";
import { type InboxState, useChange, useInbox } from "./asking";
import css from "./mind.module.css";
import { Words } from "./parts";
import { useMind } from "./watch";
import { eventType } from "./words";

type InboxEvent = Schemas["InboxEvent"];

interface Lane {
  title: string;
  about: string;
  state: InboxState;
  keep?: (event: InboxEvent) => boolean;
}

const LANES: Lane[] = [
  { title: "Failed", about: "Failed five times. Retry them when the cause is fixed.", state: "dead" },
  { title: "In progress", about: "Being processed by the current cycle.", state: "taken" },
  { title: "Urgent", about: "Read at the next step of the current cycle.", state: "pending", keep: (event) => event.lane === "urgent" },
  { title: "Waiting", about: "Read in the next cycle, in this order.", state: "pending", keep: (event) => event.lane === "normal" },
];

/** What waits for the agent, in the order in which it is taken; and what was given up. */
export function InboxTab(): ReactNode {
  const { agent } = useMind();
  const inboxes = { pending: useInbox(agent.id, "pending"), taken: useInbox(agent.id, "taken"), dead: useInbox(agent.id, "dead") };
  const all = Object.values(inboxes);
  const failed = all.find((each) => each.error && !each.data);
  if (failed) return <ErrorState error={failed.error} onRetry={() => void failed.refetch()} />;
  if (all.some((each) => each.data === undefined)) return <Skeleton lines={10} />;
  const eventsOf = ({ state, keep }: Lane): InboxEvent[] => inboxes[state].data!.pages.flatMap((page) => page.events).filter(keep ?? (() => true));
  const lanes = LANES.map((lane) => ({ ...lane, events: eventsOf(lane) })).filter((lane) => lane.events.length > 0);
  if (lanes.length === 0) {
    return (
      <Empty title="Inbox is empty.">
        <p>Messages to {agent.name} appear here until they are processed.</p>
      </Empty>
    );
  }
  return (
    <>
      {lanes.map((lane) => (
        <section key={lane.title} className={css.section} aria-label={lane.title}>
          <div className={css.sectionHead}>
            <h2>
              {lane.title} <span className={css.count}>{lane.events.length}</span>
            </h2>
          </div>
          <p className={css.aside}>{lane.about}</p>
          <ul className={css.cards}>
            {lane.events.map((event) => (
              <EventCard key={event.id} event={event} />
            ))}
          </ul>
          {lane.title !== "Urgent" && <MoreWhenSeen pages={inboxes[lane.state]} />}
        </section>
      ))}
    </>
  );
}

function EventCard({ event }: { event: InboxEvent }): ReactNode {
  const { agent } = useMind();
  const say = useToast();
  const path = { agent_id: agent.id, event_id: event.id };
  const requeue = useChange(agent.id, () => post("/api/agents/{agent_id}/inbox/{event_id}/requeue", { path }));
  const hasten = useChange(agent.id, () => post("/api/agents/{agent_id}/inbox/{event_id}/urgent", { path }));
  const failed = (error: unknown): void => say(inWords(error));
  const from = event.sender ?? named(event.payload);
  return (
    <li className={css.card}>
      <div className={css.cardHead}>
        <strong>{from ?? eventType(event.type)}</strong>
        <span className={css.meta}>
          {from && <span>{eventType(event.type).toLowerCase()}</span>}
          {event.space && <span>in {event.space}</span>}
          <Time value={event.created_at} form="ago" />
          {event.attempts > 0 && <span>{event.attempts === 1 ? "failed once" : `failed ${event.attempts} times`}</span>}
          {event.state === "pending" && event.not_before && (
            <span>
              tried again <Time value={event.not_before} form="ago" />
            </span>
          )}
        </span>
        {!event.wakes && <Badge title="Read the next time the agent wakes.">does not wake</Badge>}
      </div>
      <Words text={event.text} plain />
      {event.state === "dead" && (
        <div className={css.buttons}>
          <Button small icon={<RotateCw size={15} />} busy={requeue.isPending} onClick={() => requeue.mutate(undefined, { onError: failed, onSuccess: () => say("Queued again. The agent will wake.") })}>
            Try again
          </Button>
        </div>
      )}
      {event.state === "pending" && event.lane === "normal" && (
        <div className={css.buttons}>
          <Button small icon={<ArrowUpToLine size={15} />} busy={hasten.isPending} onClick={() => hasten.mutate(undefined, { onError: failed })}>
            Make urgent
          </Button>
        </div>
      )}
    </li>
  );
}

/** What an event came from that nobody has sent: the service, the plan, the timer, the tool. */
function named(payload: InboxEvent["payload"]): string | null {
  const name = payload.service ?? payload.plan_name ?? payload.timer_name ?? payload.tool;
  return typeof name === "string" && name ? name : null;
}
