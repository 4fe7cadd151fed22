import { Plus } from "lucide-react";
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import { Redirect, Route, Switch, useLocation } from "wouter";
import { useConnection, useSpaces, useTrouble } from "../denizen/hooks";
import { NewSpace } from "../spaces/NewSpace";
import { SpacePage } from "../spaces/SpacePage";
import { Button } from "../ui/Button";
import { Empty, Skeleton } from "../ui/States";
import { Boundary } from "./Boundary";
import { ConnectModelCard } from "./ConnectModelCard";
import { OfflineBanner, TroubleBanner } from "./OfflineBanner";
import { NoticeToasts } from "./NoticeToasts";
import { Notifier } from "./Notifier";
import { MenuOpener, Page } from "./Page";
import { spaceAt } from "./places";
import css from "./shell.module.css";
import { Shortcuts } from "./Shortcuts";
import { Sidebar } from "./Sidebar";

const Mind = lazy(() => import("../mind/MindPage"));
const Agents = lazy(() => import("../agents/AgentsPage"));
const NewAgent = lazy(() => import("../agents/NewAgentPage"));
const Admin = lazy(() => import("../admin/AdminPage"));
const Own = lazy(() => import("../me/MePage"));
const Panel = lazy(() => import("../panel/PanelPage"));
const Memory = lazy(() => import("../memory/MemoryPage"));
const Source = lazy(() => import("../memory/SourcePage"));
const Search = lazy(() => import("../spaces/SearchPage"));

const LAST_SPACE = "last space";

/** The screen of someone who is signed in: the sidebar, and where they are. */
export function Frame(): ReactNode {
  const [path] = useLocation();
  const [open, setOpen] = useState(false);
  const connection = useConnection();
  const trouble = useTrouble();
  const main = useRef<HTMLDivElement>(null);
  useEffect(() => {
    setOpen(false);
    const space = spaceAt(path);
    if (space) localStorage.setItem(LAST_SPACE, space);
  }, [path]);
  return (
    <div className={css.frame} data-sidebar={open ? "open" : "closed"}>
      <a className={css.skip} href="#main">
        Skip to content
      </a>
      <Sidebar open={open} onClose={() => setOpen(false)} />
      <Shortcuts />
      <NoticeToasts />
      <Notifier />
      <div className={css.main} id="main" tabIndex={-1} ref={main}>
        {connection === "lost" && <OfflineBanner />}
        {trouble && <TroubleBanner trouble={trouble} />}
        <ConnectModelCard />
        <MenuOpener value={() => setOpen(true)}>
          <Boundary of={path} title="Not loaded">
            <Suspense fallback={<Waiting />}>
              <Switch>
                <Route path="/" component={Home} />
                <Route path="/s/:space/m/:seq">{({ space, seq }) => <SpacePage key={space} id={space} at={Number(seq)} />}</Route>
                <Route path="/s/:space">{({ space }) => <SpacePage key={space} id={space} />}</Route>
                <Route path="/panels/:space">{({ space }) => <Panel key={space} id={space} />}</Route>
                <Route path="/search" component={Search} />
                <Route path="/agents" component={Agents} />
                <Route path="/agents/new" component={NewAgent} />
                <Route path="/agents/:id/*?">{({ id }) => <Mind id={id} />}</Route>
                <Route path="/admin/*?" component={Admin} />
                <Route path="/memory/*?" component={Memory} />
                <Route path="/m/:id">{({ id }) => <Source key={id} id={id} />}</Route>
                <Route path="/me" component={Own} />
                <Route component={Nowhere} />
              </Switch>
            </Suspense>
          </Boundary>
        </MenuOpener>
      </div>
    </div>
  );
}

/** Where one was last, or the first space there is. */
function Home(): ReactNode {
  const spaces = useSpaces();
  const [making, setMaking] = useState(false);
  if (spaces === null) return <Waiting />;
  const last = localStorage.getItem(LAST_SPACE);
  const found = spaces.find((each) => each.info.id === last) ?? spaces[0];
  if (found) return <Redirect to={`/s/${found.info.id}`} replace />;
  return (
    <Page title="Welcome">
      <Empty title="No spaces yet.">
        <p>Create one, or ask someone to add you to theirs.</p>
        <Button variant="primary" icon={<Plus size={16} />} onClick={() => setMaking(true)}>
          New space
        </Button>
      </Empty>
      {making && <NewSpace onClose={() => setMaking(false)} />}
    </Page>
  );
}

function Nowhere(): ReactNode {
  return (
    <Page title="Not found">
      <Empty title="Page not found.">
        <p>The link may be wrong, or the page was removed.</p>
      </Empty>
    </Page>
  );
}

function Waiting(): ReactNode {
  return (
    <div className={css.waiting}>
      <Skeleton lines={8} />
    </div>
  );
}
