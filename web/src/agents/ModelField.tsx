import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Link } from "wouter";
import { get, type Schemas } from "../denizen/api";
import { Select, TextField } from "../ui/Field";
import css from "./agents.module.css";

type Model = Schemas["ListedModel"];

const OTHER = "another";
/** Those that most people look for first. */
const WELL_KNOWN = ["anthropic", "openai", "google", "mistral", "groq", "openrouter"];

export function useModels() {
  return useQuery({ queryKey: ["models"], queryFn: ({ signal }) => get("/api/models", { signal }), staleTime: 60_000 });
}

interface ModelFieldProps {
  value: string;
  onChange: (model: string) => void;
  error?: string;
}

/** A model: those that can be had are offered, any other can be named, and what a key is missing for is said. */
export function ModelField({ value, onChange, error }: ModelFieldProps): ReactNode {
  const models = useModels();
  const [named, setNamed] = useState(false);
  const known = models.data?.models.map((each) => each.name) ?? [];
  const other = named || (value !== "default" && models.data !== undefined && !known.includes(value));
  const missing = models.data?.missing_keys.find((each) => each.provider === value.split(":")[0]);
  const choose = (chosen: string): void => {
    setNamed(chosen === OTHER);
    onChange(chosen === OTHER ? "" : chosen);
  };
  return (
    <div className={css.model}>
      <Select
        label="Model"
        value={other ? OTHER : value}
        onChange={(event) => choose(event.target.value)}
        error={other ? undefined : error}
        hint={!other && models.data && <MoreWithKeys missing={models.data.missing_keys} />}
      >
        <option value="default">Server default: {models.data?.default ?? "…"}</option>
        {grouped(models.data?.models ?? []).map(([provider, group]) => (
          <optgroup key={provider} label={provider}>
            {group.map((each) => (
              <option key={each.name} value={each.name}>
                {each.name}
                {PAID[each.paid_by]}
              </option>
            ))}
          </optgroup>
        ))}
        <option value={OTHER}>Other…</option>
      </Select>
      {other && (
        <TextField
          label="Model name"
          placeholder="provider:name"
          value={value}
          autoComplete="off"
          spellCheck={false}
          onChange={(event) => onChange(event.target.value.trim())}
          error={error}
          hint={missing ? <NeedsKey missing={missing} /> : "The provider and its name for the model, such as anthropic:claude-sonnet-5-5 or ollama:llama3.2."}
        />
      )}
    </div>
  );
}

const PAID: Record<Model["paid_by"], string> = { nobody: "", server: "", organization: "", you: " · your own key" };

function NeedsKey({ missing }: { missing: Schemas["MissingKey"] }): ReactNode {
  return (
    <>
      {missing.provider} needs a key. <Link href={`/admin/keys?name=${missing.key}`}>Add {missing.key}</Link>.
    </>
  );
}

function MoreWithKeys({ missing }: { missing: Schemas["MissingKey"][] }): ReactNode {
  const names = WELL_KNOWN.filter((each) => missing.some(({ provider }) => provider === each));
  if (names.length === 0) return null;
  return (
    <>
      Add a key to use {names.join(", ")} and others. <Link href="/admin/keys">Add key</Link>
    </>
  );
}

/** By provider, those without one first. */
function grouped(models: Model[]): [string, Model[]][] {
  const groups = new Map<string, Model[]>();
  for (const each of models) {
    const provider = each.name.includes(":") ? each.name.split(":")[0]! : "Without a key";
    groups.set(provider, [...(groups.get(provider) ?? []), each]);
  }
  return [...groups].sort(([a], [b]) => Number(b === "Without a key") - Number(a === "Without a key") || a.localeCompare(b));
}
