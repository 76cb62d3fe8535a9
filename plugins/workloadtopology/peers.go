// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	"strconv"
	"strings"
)

// mostRoles is how many roles of an annotation count.
const mostRoles = 32

// peersOfRoles is what an annotation says: roles with weights, each role once.
type peersOfRoles struct {
	roles   []string
	weights []int64
	// ignored is how many parts say nothing that can be used; the first of them is example.
	ignored int
	example string
}

// readPeers reads roles and weights of 1 to 100, as in "taskmanager=10, jobmanager=1". A role without a weight has 1. What
// is no such thing is ignored, and so is a role that was named before.
func readPeers(annotation string) peersOfRoles {
	var read peersOfRoles
	if annotation == "" {
		return read
	}
	seen := make(map[string]bool)
	for _, part := range strings.Split(annotation, ",") {
		name, weight := strings.TrimSpace(part), int64(1)
		if i := strings.IndexByte(name, '='); i >= 0 {
			parsed, err := strconv.ParseInt(strings.TrimSpace(name[i+1:]), 10, 64)
			if err != nil {
				parsed = 0
			}
			name, weight = strings.TrimSpace(name[:i]), parsed
		}
		if name == "" || weight < 1 || weight > 100 || seen[name] || len(read.roles) == mostRoles {
			if read.ignored++; read.ignored == 1 {
				read.example = part
			}
			continue
		}
		seen[name] = true
		read.roles, read.weights = append(read.roles, name), append(read.weights, weight)
	}
	return read
}
