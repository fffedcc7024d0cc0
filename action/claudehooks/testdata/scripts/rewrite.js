// Adds an argument to commands.
let text = "";
process.stdin.on("data", (part) => (text += part));
process.stdin.on("end", () => {
  const input = JSON.parse(text).tool_input;
  input.command += " " + process.argv[2];
  console.log(JSON.stringify({ hookSpecificOutput: { hookEventName: "PreToolUse", updatedInput: input } }));
});
