// Connects opencode with "grapnel gate". A call runs only after the gate has answered.
import { spawn } from "node:child_process"

const command = (process.env.GRAPNEL_GATE || "grapnel gate opencode --policy library:safe-shell").split(" ")

function ask(event) {
  return new Promise((resolve, reject) => {
    const gate = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "ignore"] })
    let text = ""
    const fail = () => reject(new Error("grapnel gate: not executed: the gate gave no answer"))
    gate.on("error", fail)
    gate.stdin.on("error", () => {})
    gate.stdout.on("data", (chunk) => (text += chunk))
    gate.on("close", (code) => {
      try {
        const answer = JSON.parse(text)
        if (code !== 0 || (answer.decision !== "allow" && answer.decision !== "deny")) return fail()
        if (answer.decision === "deny") return reject(new Error(answer.reason))
        resolve(answer)
      } catch {
        fail()
      }
    })
    gate.stdin.end(JSON.stringify(event))
  })
}

// opencode sees changes only in the objects that it gave.
function replace(object, values) {
  for (const key of Object.keys(object)) if (!(key in values)) delete object[key]
  Object.assign(object, values)
}

export const GrapnelGate = async ({ directory }) => ({
  "chat.message": async (input, output) => {
    await ask({ hook: "chat.message", directory, input, output }).catch(() => {}) // no decision
  },
  "tool.execute.before": async (input, output) => {
    const answer = await ask({ hook: "tool.execute.before", directory, input, output })
    if (answer.args) replace(output.args, answer.args)
  },
  "tool.execute.after": async (input, output) => {
    const answer = await ask({ hook: "tool.execute.after", directory, input, output })
    if (answer.output) replace(output, answer.output)
  },
})
