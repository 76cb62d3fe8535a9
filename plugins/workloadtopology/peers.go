// SPDX-License-Identifier: Apache-2.0

package workloadtopology

import (
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// mostRoles is the largest number of roles in an annotation, and mostParts that of parsed parts. The rest is one
	// ignored part.
	mostRoles = 32
	mostParts = 256
	// mostExample is the largest number of bytes of an ignored part in an explanation.
	mostExample = 40
)

// peersOfRoles is a parsed annotation: roles with weights, each role once.
type peersOfRoles struct {
	roles   []string
	weights []int64
	// ignored is the number of ignored parts, and example the first of them.
	ignored int
	example string
}

// readPeers parses roles, which are label values, with weights of 1 to 100, as in "taskmanager=10, jobmanager=1". A
// role without a weight has 1. It ignores malformed parts, and a role that was named before.
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

// readPeer parses a role and its weight.
func readPeer(part string) (role string, weight int64, ok bool) {
	// 63 bytes is the longest label value. The rest is for the weight.
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
