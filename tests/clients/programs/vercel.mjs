// The Vercel AI SDK: an answer, a stream, a tool that it runs, and an answer of a schema.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Output, generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const denizen = createOpenAICompatible({
  name: "denizen",
  baseURL: process.env.DENIZEN_V1,
  apiKey: process.env.DENIZEN_TOKEN,
  supportsStructuredOutputs: true,
});
const common = { model: denizen("ada"), maxRetries: 0 };
const plain = await generateText({ ...common, prompt: "Hello" });
let streamed = "";
for await (const piece of streamText({ ...common, prompt: "Count" }).textStream) {
  streamed += piece;
}
const told = await generateText({
  ...common,
  prompt: "Weather?",
  stopWhen: stepCountIs(3),
  tools: {
    weather: tool({
      description: "The weather in a town.",
      inputSchema: z.object({ town: z.string() }),
      execute: async ({ town }) => `Rain in ${town}`,
    }),
  },
});
const verdict = await generateText({
  ...common,
  prompt: "Did it pass?",
  output: Output.object({ schema: z.object({ passed: z.boolean(), tests: z.number() }) }),
});
console.log(JSON.stringify({ plain: plain.text, streamed, told: told.text, verdict: verdict.output }));
