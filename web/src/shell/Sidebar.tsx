import { Bot, Brain, Command, Keyboard, LogOut, Monitor, Moon, PanelLeftClose, Plus, Search, Settings2, Sun, UserRound, UsersRound } from "lucide-react";
import { lazy, type ReactNode, Suspense, useEffect, useRef, useState } from "react";
import { Link, useLocation } from "wouter";
import { useIsAdmin, useMe, useNamesakes, useSpaces } from "../denizen/hooks";
import { useLive } from "../denizen/live";
import { type SpaceState, unread } from "../denizen/store";
import { NewSpace } from "../spaces/NewSpace";
import { Avatar, STATUS_WORDS, StatusDot } from "../ui/Avatar";
import { IconButton } from "../ui/Button";
import { classes } from "../ui/classes";
import { Menu } from "../ui/Menu";
import { Skeleton } from "../ui/States";
import { isDirectSpace } from "./direct";
import { isPanel, pathOf, sectionsOf } from "./places";
import css from "./shell.module.css";
import { openOver } from "./Shortcuts";
import { signOut } from "./signOut";
import { chooseTheme, type Theme, useTheme } from "./theme";
import { base } from "../denizen/base";

const NewPanel = lazy(() => import("../panel/NewPanel").then((module) => ({ default: module.NewPanel })));

export function Sidebar({ open, onClose }: { open: boolean; onClose: () => void }): ReactNode {
  const me = useMe();
  const spaces = useSpaces();
  const [making, setMaking] = useState<"space" | "panel" | null>(null);
  const { shared, direct, panels } = sectionsOf(spaces ?? [], me.id);
  return (
    <>
      <div className={css.scrim} onClick={onClose} aria-hidden />
      <aside className={css.sidebar} aria-label="Navigation" data-open={open}>
        <div className={css.brand}>
          <img src={`${base}/icon.svg`} alt="" width={24} height={24} />
          <span className={css.brandName}>{me.organization.name}</span>
          <IconButton label="Find anything" icon={<Command size={18} />} onClick={() => openOver("palette")} />
          <Link href="/search" className={css.iconLink} aria-label="Search" title="Search">
            <Search size={18} />
          </Link>
          <IconButton className={css.closeButton} label="Close menu" icon={<PanelLeftClose size={18} />} onClick={onClose} />
        </div>
        <nav className={css.places} aria-label="Spaces">
          <div className={css.sectionHead}>
            <h2>Spaces</h2>
            <IconButton label="Create a space" icon={<Plus size={16} />} onClick={() => setMaking("space")} />
          </div>
          {spaces === null ? (
            <div className={css.loadingPlaces}>
              <Skeleton lines={5} label="Loading spaces" />
            </div>
          ) : (
            <>
              <PlaceList spaces={shared} empty="No shared spaces yet." />
              {direct.length > 0 && (
                <>
                  <div className={css.sectionHead}>
                    <h2>Direct messages</h2>
                  </div>
                  <PlaceList spaces={direct} />
                </>
              )}
              <div className={css.sectionHead}>
                <h2>Panels</h2>
                <IconButton label="New panel" icon={<Plus size={16} />} onClick={() => setMaking("panel")} />
              </div>
              <PlaceList spaces={panels} />
            </>
          )}
        </nav>
        <nav className={css.tools} aria-label="Places">
          <ToolLink href="/agents" icon={<Bot size={18} />} label="Agents" />
          <ToolLink href="/memory/you" under="/memory" icon={<Brain size={18} />} label="Memory" />
          {useIsAdmin() && <ToolLink href="/admin/people" under="/admin" icon={<Settings2 size={18} />} label="Administration" />}
        </nav>
        <div className={css.foot}>
          <Link href="/me" className={css.meLink}>
            <Avatar name={me.name} id={me.id} kind={me.kind} size="small" />
            <span className={css.meName}>{me.name}</span>
          </Link>
          <ThemeMenu />
          <Menu
            label="You"
            icon={<UserRound size={17} />}
            items={[
              { label: "Shortcuts", icon: <Keyboard size={16} />, onSelect: () => openOver("help") },
              { label: "Sign out", icon: <LogOut size={16} />, onSelect: () => void signOut() },
            ]}
          />
        </div>
      </aside>
      {making === "space" && <NewSpace onClose={() => setMaking(null)} />}
      {making === "panel" && (
        <Suspense>
          <NewPanel onClose={() => setMaking(null)} />
        </Suspense>
      )}
    </>
  );
}

/** Whether it is the conversation of the person and one other. */
export function isDirect({ info }: SpaceState, me: string): boolean {
  return isDirectSpace(info, me);
}

function PlaceList({ spaces, empty }: { spaces: SpaceState[]; empty?: string }): ReactNode {
  if (spaces.length === 0) return empty ? <p className={css.noPlaces}>{empty}</p> : null;
  return (
    <ul>
      {spaces.map((space) => (
        <li key={space.info.id}>
          <PlaceLink space={space} />
        </li>
      ))}
    </ul>
  );
}

function PlaceLink({ space }: { space: SpaceState }): ReactNode {
  const [path] = useLocation();
  const me = useMe();
  const presence = useLive((state) => state.presence);
  const { info } = space;
  const hint = useNamesakes().get(info.id);
  const href = pathOf(space);
  const count = unread(space);
  const other = !isPanel(space) && isDirect(space, me.id) ? info.members.find((each) => each.id !== me.id) : undefined;
  const busy = info.members.filter((each) => presence[each.id]?.status === "alive");
  const status = other ? presence[other.id]?.status : busy.length ? "alive" : undefined;
  const current = path === href || path.startsWith(`${href}/`);
  const link = useRef<HTMLAnchorElement>(null);
  useEffect(() => {
    if (current) link.current?.scrollIntoView({ block: "nearest" });
  }, [current]);
  return (
    <Link
      ref={link}
      href={href}
      className={classes(css.place, count > 0 && css.unread)}
      aria-current={current ? "page" : undefined}
      // Whoever is there already goes on writing.
      onMouseDown={(event) => current && event.preventDefault()}
    >
      {other ? <Avatar name={other.name} id={other.id} kind={other.kind} size="small" /> : <span className={css.hash} aria-hidden>{isPanel(space) ? <UsersRound size={16} /> : "#"}</span>}
      <span className={css.placeName}>
        {other?.name ?? info.name}
        {hint && (
          <span className={css.placeHint} title={hint}>
            <span className="visually-hidden">, </span>
            {hint}
          </span>
        )}
      </span>
      {status && status !== "sleeping" && (
        <span title={busy.length ? `${busy.map((each) => each.name).join(", ")}: ${STATUS_WORDS.alive}` : STATUS_WORDS[status]}>
          <StatusDot status={status} labelled />
        </span>
      )}
      {count > 0 && (
        <span className={css.count}>
          {count > 99 ? "99+" : count}
          <span className="visually-hidden"> unread</span>
        </span>
      )}
    </Link>
  );
}

function ToolLink({ href, under = href, icon, label }: { href: string; under?: string; icon: ReactNode; label: string }): ReactNode {
  const [path] = useLocation();
  return (
    <Link href={href} className={css.place} aria-current={path.startsWith(under) ? "page" : undefined}>
      {icon}
      <span className={css.placeName}>{label}</span>
    </Link>
  );
}

const THEMES: { id: Theme; label: string; icon: ReactNode }[] = [
  { id: "system", label: "System", icon: <Monitor size={16} /> },
  { id: "light", label: "Light", icon: <Sun size={16} /> },
  { id: "dark", label: "Dark", icon: <Moon size={16} /> },
];

function ThemeMenu(): ReactNode {
  const theme = useTheme();
  const shown = THEMES.find((each) => each.id === theme)!;
  return (
    <Menu
      label={`Colours: ${shown.label.toLowerCase()}`}
      icon={shown.icon}
      items={THEMES.map((each) => ({ ...each, onSelect: () => chooseTheme(each.id) }))}
    />
  );
}
