// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// mostRoles is how many roles of an annotation count, and mostParts how many parts of it are looked at: the rest is
	// ignored as one.
	mostRoles = 32
	mostParts = 256
	// mostExample is how many bytes of a part that is ignored are told of.
	mostExample = 40
)

// peersOfRoles is what an annotation says: roles with weights, each role once.
type peersOfRoles struct {
	roles   []string
	weights []int64
	// ignored is how many parts say nothing that can be used; the first of them is example.
	ignored int
	example string
}

// readPeers reads roles and weights of 1 to 100, as in "taskmanager=10, jobmanager=1". A role without a weight has 1. What
// is no such thing is ignored: a role is the value of a label. So is a role that was named before.
func readPeers(annotation string) peersOfRoles {
	var read peersOfRoles
	if annotation == "" {
		return read
	}
	seen := make(map[string]bool)
	for i, part := range strings.SplitN(annotation, ",", mostParts+1) {
		role, weight, ok := readPeer(part)
		if !ok || seen[role] || len(read.roles) == mostRoles || i == mostParts {
			if read.ignored++; read.ignored == 1 {
				read.example = part
				if len(part) > mostExample {
					read.example = strings.ToValidUTF8(part[:mostExample], "")
				}
			}
			continue
		}
		seen[role] = true
		read.roles, read.weights = append(read.roles, role), append(read.weights, weight)
	}
	return read
}

// readPeer reads a role and its weight.
func readPeer(part string) (role string, weight int64, ok bool) {
	// The longest value of a label, and some room for the weight.
	if len(part) > 2*validation.LabelValueMaxLength {
		return "", 0, false
	}
	role, weight = strings.TrimSpace(part), 1
	if i := strings.IndexByte(role, '='); i >= 0 {
		parsed, err := strconv.ParseInt(strings.TrimSpace(role[i+1:]), 10, 64)
		if err != nil {
			return "", 0, false
		}
		role, weight = strings.TrimSpace(role[:i]), parsed
	}
	return role, weight, role != "" && len(validation.IsValidLabelValue(role)) == 0 && weight >= 1 && weight <= 100
}
