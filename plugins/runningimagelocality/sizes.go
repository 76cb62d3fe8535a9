// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import v1 "k8s.io/api/core/v1"

// sizeTable knows the sizes of images from what the nodes report. A node reports its 50 largest images (kubelet's
// nodeStatusMaxImages), and the same image may have another size with another runtime; so a size is an average, and
// some are not known. It is not safe for parallel use; the index guards it.
type sizeTable struct {
	images map[string]*imageSize
	// sum is the sum of the images' averages.
	sum int64
}

type imageSize struct {
	// sum is the sum of the sizes in bytes that reports nodes gave, each no more than maxSize.
	sum, reports int64
}

// reportedSizes is what a node reported last: the informer's own slice, to be taken back when there is a newer one.
type reportedSizes []v1.ContainerImage

func newSizeTable() sizeTable {
	return sizeTable{images: map[string]*imageSize{}}
}

// replace takes back a node's old report and counts its new one.
func (t *sizeTable) replace(names *names, old, new reportedSizes) {
	if old.equal(new) {
		return
	}
	// The new one first, so that what is in both is not made again.
	t.count(names, new, 1)
	t.count(names, old, -1)
}

func (t *sizeTable) count(names *names, report reportedSizes, sign int64) {
	for i := range report {
		size := report[i].SizeBytes
		if size <= 0 {
			continue
		}
		// More is worth no more, and a sum of what a node claims could be more than an int64 holds.
		if size > maxSize {
			size = maxSize
		}
		for _, written := range report[i].Names {
			if name, ok := names.normalise(written); ok {
				t.add(name, sign*size, sign)
			}
		}
	}
}

func (t *sizeTable) add(name string, size, reports int64) {
	image, ok := t.images[name]
	if !ok {
		image = &imageSize{}
		t.images[name] = image
	} else {
		t.sum -= image.average()
	}
	image.sum += size
	image.reports += reports
	if image.reports == 0 {
		delete(t.images, name)
		return
	}
	t.sum += image.average()
}

// average is the image's average size in bytes. There is at least one report.
func (i *imageSize) average() int64 {
	return i.sum / i.reports
}

// of returns the size of an image in bytes: the average of what nodes report; if none does, the average of all images
// whose size is known (each name counts: tags and digests), because nothing speaks for more or for less; and if no size
// is known at all, maxSize, from which nothing is taken.
func (t *sizeTable) of(name string) int64 {
	if image, ok := t.images[name]; ok {
		return image.average()
	}
	if known := int64(len(t.images)); known > 0 {
		return t.sum / known
	}
	return maxSize
}

func (r reportedSizes) equal(other reportedSizes) bool {
	if len(r) != len(other) {
		return false
	}
	for i := range r {
		if r[i].SizeBytes != other[i].SizeBytes || !equalStrings(r[i].Names, other[i].Names) {
			return false
		}
	}
	return true
}

func equalStrings(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
