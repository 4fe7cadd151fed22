import { lazy, type ReactNode, Suspense } from "react";
import { Redirect, useLocation } from "wouter";
import { useIsAdmin } from "../denizen/hooks";
import { NotForYou } from "../shell/NotForYou";
import { Page } from "../shell/Page";
import { Skeleton } from "../ui/States";
import { LinkTabs } from "../ui/Tabs";
import { People } from "./People";

const Tokens = lazy(() => import("./Tokens"));
const Models = lazy(() => import("./Models"));
const Keys = lazy(() => import("./Keys"));
const McpServers = lazy(() => import("./McpServers"));
const Budgets = lazy(() => import("./Budgets"));
const Usage = lazy(() => import("./Usage"));
const Health = lazy(() => import("./Health"));
const Settings = lazy(() => import("./Settings"));
const Profiles = lazy(() => import("./Profiles"));
const Bridges = lazy(() => import("./Bridges"));
const Memory = lazy(() => import("./Memory"));
const Audit = lazy(() => import("./Audit"));
const Forgetting = lazy(() => import("./Forgetting"));

const ROOMS: Record<string, { label: string; room: () => ReactNode }> = {
  people: { label: "People", room: () => <People /> },
  tokens: { label: "Tokens", room: () => <Tokens /> },
  models: { label: "Models", room: () => <Models /> },
  keys: { label: "Keys", room: () => <Keys /> },
  mcp: { label: "MCP servers", room: () => <McpServers /> },
  budgets: { label: "Budgets", room: () => <Budgets /> },
  usage: { label: "Usage", room: () => <Usage /> },
  health: { label: "Health", room: () => <Health /> },
  settings: { label: "Organization", room: () => <Settings /> },
  profiles: { label: "Profiles", room: () => <Profiles /> },
  bridges: { label: "Bridges", room: () => <Bridges /> },
  memory: { label: "Memory", room: () => <Memory /> },
  audit: { label: "Audit log", room: () => <Audit /> },
  forgetting: { label: "Forgetting", room: () => <Forgetting /> },
};
const TABS = Object.entries(ROOMS).map(([name, { label }]) => ({ href: `/admin/${name}`, label }));

/** Looking after a house: who is in it, what they use, how it is. */
export default function AdminPage(): ReactNode {
  const [path] = useLocation();
  const name = path.split("/")[2] ?? "";
  if (!useIsAdmin()) {
    return (
      <Page title="Administration">
        <NotForYou what="Administration is for admins and owners." />
      </Page>
    );
  }
  const found = ROOMS[name];
  if (found === undefined) return <Redirect to="/admin/people" replace />;
  return (
    <Page title="Administration" below={<LinkTabs label="Administration" tabs={TABS} current={`/admin/${name}`} />}>
      <Suspense fallback={<Skeleton lines={8} />}>{found.room()}</Suspense>
    </Page>
  );
}
