package coordinator

// reservedPrefix begins the names of labels and demands that requests and blueprints cannot have: runners match the demands below by name.
const reservedPrefix = "coordinator."

// The demands of runs. Runners of a coordinator have runnerLabel as labelRunner, and labelCommand with the name of each of their commands;
// labelPipelines is the identity of PipelineOptions.Dir.
const (
	labelRunner    = reservedPrefix + "runner"
	runnerLabel    = "yes"
	labelCommand   = reservedPrefix + "command/"
	labelPipelines = reservedPrefix + "pipelines"
)
