// OpenAI's client for JavaScript: an answer, a stream, a tool that it runs, and a response.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.env.DENIZEN_V1, apiKey: process.env.DENIZEN_TOKEN, maxRetries: 0 });
const said = (content) => [{ role: "user", content }];
const plain = await client.chat.completions.create({ model: "ada", messages: said("Hello") });
let streamed = "";
for await (const chunk of await client.chat.completions.create({
  model: "ada",
  messages: said("Count"),
  stream: true,
})) {
  streamed += chunk.choices[0]?.delta?.content ?? "";
}
const runner = client.chat.completions.runTools({
  model: "ada",
  messages: said("Weather?"),
  tools: [
    {
      type: "function",
      function: {
        name: "weather",
        description: "The weather in a town.",
        parameters: { type: "object", properties: { town: { type: "string" } }, required: ["town"] },
        parse: JSON.parse,
        function: ({ town }) => `Rain in ${town}`,
      },
    },
  ],
});
const told = await runner.finalContent();
const response = await client.responses.create({ model: "ada", input: "Goodbye" });
console.log(
  JSON.stringify({ plain: plain.choices[0].message.content, streamed, told, responded: response.output_text }),
);
