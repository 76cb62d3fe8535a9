// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// maxNameBytes is the longest name of a dataset. A label's key with its prefix has up to 317 bytes, an object's
	// name 253.
	maxNameBytes = 253
	// maxReads is the largest number of a pod's datasets: each is one bit of a set.
	maxReads = 64
	// maxParts is the largest number of parts of a pod's annotation, which is parsed at each attempt.
	maxParts = 1024
	// maxRead is the largest size of a dataset, 1 Pi: the sum of a pod's datasets, in percent, is at most 64 × 2⁵⁰ ×
	// 100, which an int64 holds.
	maxRead int64 = 1 << 50
	// maxSizeBytes is the longest text of a size.
	maxSizeBytes = 24
)

// reason is the reason for ignoring a part of an annotation. It is a value of the metric's label.
type reason string

const (
	malformed reason = "malformed"
	repeated  reason = "repeated"
	tooMany   reason = "too_many"
)

// read is a dataset that a pod reads, by the name in its annotation.
type read struct {
	name  string
	bytes int64
}

// refused is a part of a pod's annotation that is ignored.
type refused struct {
	part   string
	reason reason
}

// refusals are the ignored parts of a pod's annotation: the first ones, and their number for each reason.
type refusals struct {
	first                        []refused
	malformed, repeated, tooMany int
}

// add adds an ignored part.
func (r *refusals) add(part string, why reason) {
	if len(r.first) < explainedNames {
		r.first = append(r.first, refused{part, why})
	}
	switch why {
	case malformed:
		r.malformed++
	case repeated:
		r.repeated++
	case tooMany:
		r.tooMany++
	}
}

// count returns the number of ignored parts.
func (r *refusals) count() int {
	return r.malformed + r.repeated + r.tooMany
}

// parseReads parses a pod's annotation, such as "sales=120Gi,logs/2024=3Ti,ref", and returns the datasets that the pod
// reads and the bytes of each. A dataset without a size has the mean of the given sizes; if there are none, all have
// the same. The text after the first 1,024 parts is one ignored part.
func parseReads(text string) (reads []read, ignored refusals) {
	var sum, sized int64
	parts := 0
	for rest, more := text, true; more; parts++ {
		if parts == maxParts {
			ignored.add(rest, tooMany)
			break
		}
		var part string
		part, rest, more = cut(rest, ',')
		part = strings.TrimSpace(part)
		if part == "" {
			// For example after a trailing comma.
			continue
		}
		name, size, hasSize := cut(part, '=')
		name, size = strings.TrimSpace(name), strings.TrimSpace(size)
		bytes, ok := int64(0), true
		if hasSize {
			bytes, ok = parseSize(size)
		}
		switch {
		case !ok || !validName(name):
			ignored.add(part, malformed)
		case reading(reads, name):
			ignored.add(part, repeated)
		case len(reads) == maxReads:
			ignored.add(part, tooMany)
		default:
			reads = append(reads, read{name, bytes})
			if hasSize {
				sum += bytes
				sized++
			}
		}
	}
	mean := int64(1)
	if sized > 0 {
		// Rounded up, so that it is at least 1.
		mean = (sum + sized - 1) / sized
	}
	for i := range reads {
		if reads[i].bytes == 0 {
			reads[i].bytes = mean
		}
	}
	return reads, ignored
}

// reading reports whether reads has a dataset. It has at most 64.
func reading(reads []read, name string) bool {
	for i := range reads {
		if reads[i].name == name {
			return true
		}
	}
	return false
}

// parseSize parses a size such as 120Gi, more than 0, and returns at most maxRead bytes. It refuses exponents, because
// the library takes minutes for 1e-999999999, and the API server does not check annotations.
func parseSize(text string) (int64, bool) {
	// Only the suffixes Ei and E may contain an E.
	number := strings.TrimSuffix(strings.TrimSuffix(text, "i"), "E")
	if len(text) > maxSizeBytes || strings.ContainsAny(number, "eE") {
		return 0, false
	}
	quantity, err := resource.ParseQuantity(text)
	if err != nil || quantity.Sign() <= 0 {
		return 0, false
	}
	if bytes := quantity.Value(); bytes < maxRead {
		return bytes, true
	}
	return maxRead, true
}

// forEachName calls a function with each name in a node's annotation, which may have sizes too. It returns the number
// of malformed parts.
func forEachName(text string, call func(name string)) (bad int) {
	for rest, more := text, true; more; {
		var part string
		part, rest, more = cut(rest, ',')
		name, _, _ := cut(part, '=')
		switch name = strings.TrimSpace(name); {
		case validName(name):
			call(name)
		case strings.TrimSpace(part) != "":
			bad++
		}
	}
	return bad
}

// validName reports whether a text is a valid name: 1 to 253 printable ASCII characters without space, comma and =.
func validName(name string) bool {
	if name == "" || len(name) > maxNameBytes {
		return false
	}
	for i := 0; i < len(name); i++ {
		if c := name[i]; c <= ' ' || c > '~' || c == ',' || c == '=' {
			return false
		}
	}
	return true
}

// cut splits a text at the first separator.
func cut(text string, separator byte) (before, after string, found bool) {
	if i := strings.IndexByte(text, separator); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}
