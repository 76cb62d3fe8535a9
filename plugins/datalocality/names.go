// SPDX-License-Identifier: Apache-2.0

package datalocality

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

const (
	// maxNameBytes is the longest name of a dataset: that of a label's key with its prefix is 317, of an object 253.
	maxNameBytes = 253
	// maxReads is how many datasets of a pod count: one bit each of a word says which of them a domain holds.
	maxReads = 64
	// maxParts is how many parts of a pod's annotation are looked at, which is at each attempt.
	maxParts = 1024
	// maxRead is how many bytes of a dataset count, 1 Pi: with all of a pod's datasets, and in percent, that is
	// 64 × 2⁵⁰ × 100, which an int64 holds.
	maxRead int64 = 1 << 50
	// maxSizeBytes is the longest text of a size.
	maxSizeBytes = 24
)

// reason is why a part of an annotation is ignored. It is a value of the metric's label.
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

// refusals are what is ignored of a pod's annotation: the first parts, and how many there are for each reason.
type refusals struct {
	first                        []refused
	malformed, repeated, tooMany int
}

// add notes one more.
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

// count returns how many there are.
func (r *refusals) count() int {
	return r.malformed + r.repeated + r.tooMany
}

// parseReads returns what an annotation such as "sales=120Gi,logs/2024=3Ti,ref" says of a pod: which datasets it reads,
// and how many bytes of each. A dataset without a size counts as the mean of those with one; if none has a size, all
// count the same.
// What follows the first 1,024 parts counts as one that is too many.
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
			// Such as what follows a last comma.
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

// reading says whether a dataset is among those that a pod reads. They are at most 64.
func reading(reads []read, name string) bool {
	for i := range reads {
		if reads[i].name == name {
			return true
		}
	}
	return false
}

// parseSize returns a number of bytes, more than 0 and at most maxRead, of a text such as 120Gi. An exponent is none of a
// size: the library takes minutes for 1e-999999999, and annotations are not checked by the API server.
func parseSize(text string) (int64, bool) {
	// What is left are Ei and E.
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

// forEachName calls a function with the names in a node's annotation, which may have sizes too. It returns how many
// parts are none.
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

// validName says whether a text can be the name of a dataset: 1 to 253 printable ASCII characters but space, comma and =.
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

// cut divides a text at the first separator.
func cut(text string, separator byte) (before, after string, found bool) {
	if i := strings.IndexByte(text, separator); i >= 0 {
		return text[:i], text[i+1:], true
	}
	return text, "", false
}
