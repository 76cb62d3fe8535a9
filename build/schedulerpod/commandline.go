// SPDX-License-Identifier: Apache-2.0

// Package schedulerpod reads from a pod how its kube-scheduler runs: the container, the command line, the address of
// its health check, the configuration and the lease.
package schedulerpod

import (
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Program is the name of the executable.
const Program = "kube-scheduler"

// CommandLine is the command line of a container.
type CommandLine struct {
	// Elements are the container's command followed by its args or, if Shell is set, the words of the shell command.
	Elements []string
	// Command is the number of elements that come from the container's command.
	Command int
	// Program is the index of kube-scheduler, which its flags follow; -1 if the command line does not name it.
	Program int
	// Shell reports whether kube-scheduler is part of a shell command.
	Shell bool
}

// CommandLineOf returns the command line of a container.
func CommandLineOf(container *corev1.Container) CommandLine {
	line := CommandLine{Elements: slices.Concat(container.Command, container.Args), Command: len(container.Command)}
	if line.Program = slices.IndexFunc(line.Elements, isProgram); line.Program >= 0 {
		return line
	}
	for _, element := range line.Elements {
		words := strings.Fields(element)
		program := slices.IndexFunc(words, isProgram)
		if len(words) > 1 && program >= 0 && !strings.HasPrefix(element, "-") {
			return CommandLine{Elements: words, Program: program, Shell: true}
		}
	}
	return line
}

func isProgram(element string) bool {
	return !strings.HasPrefix(element, "-") && path.Base(element) == Program
}

// Arguments returns the elements after the program.
func (l CommandLine) Arguments() []string { return l.Elements[l.Program+1:] }

// FlagPlace is one place where a flag is set: the indexes of its first and last element, and its value.
type FlagPlace struct {
	First, Last int
	Value       string
}

// Find returns every place where a flag is set.
func (l CommandLine) Find(name string) []FlagPlace {
	name = flagName(name)
	var found []FlagPlace
	for i := l.Program + 1; i < len(l.Elements); i++ {
		element := l.Elements[i]
		if !strings.HasPrefix(element, "--") {
			continue
		}
		given, value, hasValue := strings.Cut(element, "=")
		place := FlagPlace{First: i, Last: i, Value: value}
		switch {
		case hasValue:
		// Whether a flag takes the next element as its value depends on the flag. An element that is not a flag can
		// only be a value.
		case i+1 < len(l.Elements) && !strings.HasPrefix(l.Elements[i+1], "-"):
			i++
			place.Last, place.Value = i, l.Elements[i]
		default:
			place.Value = "true"
		}
		if flagName(given) == name {
			found = append(found, place)
		}
	}
	return found
}

// flagName returns the name without leading dashes; kube-scheduler accepts an underscore for a dash.
func flagName(flag string) string {
	return strings.ReplaceAll(strings.TrimLeft(flag, "-"), "_", "-")
}

// Flag returns the value of a flag, by its name with or without the dashes, and whether it is set. As in
// kube-scheduler the last one wins, and a flag without a value is "true".
func (l CommandLine) Flag(name string) (value string, set bool) {
	found := l.Find(name)
	if len(found) == 0 {
		return "", false
	}
	return found[len(found)-1].Value, true
}
