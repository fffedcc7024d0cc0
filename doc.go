// Package grapnel is a framework for agents: programs in which a language model
// asks for tools, sees what they answered and goes on until it is done. Its
// centre is a hook system that may watch, steer or stop such a program at every
// moment that matters.
//
// This package holds no code, only the plan of the house.
package grapnel
