// Package mcp has the commands that put a policy in front of MCP servers.
package mcp
