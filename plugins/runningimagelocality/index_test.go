// SPDX-License-Identifier: Apache-2.0

package runningimagelocality

import (
	"fmt"
	"math"
	"math/rand"
	"reflect"
	"sync"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// counted is what runs, by image and by node.
type counted map[string]map[string]int32

func (c counted) add(image, node string) {
	if c[image] == nil {
		c[image] = map[string]int32{}
	}
	c[image][node]++
}

// content returns what an index holds, and checks that its parts agree with one another.
func (x *index) content(t *testing.T) counted {
	t.Helper()
	x.mu.Lock()
	defer x.mu.Unlock()
	byNumber := map[int32]string{}
	for name, record := range x.nodes.records {
		if name != record.name || !record.exists && record.pods == 0 {
			t.Fatalf("node %s is kept as %s, exists: %t, with %d pods", name, record.name, record.exists, record.pods)
		}
		if other, ok := byNumber[record.number]; ok || record.number >= x.nodes.next {
			t.Fatalf("node %s has number %d of %d, which is %q's", name, record.number, x.nodes.next, other)
		}
		byNumber[record.number] = name
	}
	if len(byNumber)+len(x.nodes.free) != int(x.nodes.next) {
		t.Fatalf("%d nodes and %d free numbers, want %d numbers", len(byNumber), len(x.nodes.free), x.nodes.next)
	}
	if numbers := x.nodes.numbers(); len(numbers) != len(byNumber) {
		t.Fatalf("%d numbers are published, want %d", len(numbers), len(byNumber))
	}
	content := counted{}
	for name, image := range x.images {
		if name != image.name || len(image.nodes) == 0 {
			t.Fatalf("image %s is kept as %s, with %d nodes", name, image.name, len(image.nodes))
		}
		content[name] = map[string]int32{}
		last := int32(-1)
		for _, on := range image.nodes {
			if on.node <= last || on.containers <= 0 {
				t.Fatalf("image %s: node %d with %d containers after node %d", name, on.node, on.containers, last)
			}
			last = on.node
			content[name][byNumber[on.node]] = on.containers
		}
	}
	return content
}

// world is what an API server would hold, and tells a plugin about it as informers do.
type world struct {
	random *rand.Rand
	pods   map[types.NamespacedName]*v1.Pod
	nodes  map[string]*v1.Node
	events []string
}

func (w *world) one(of ...string) string {
	return of[w.random.Intn(len(of))]
}

func (w *world) state() v1.ContainerState {
	if w.random.Intn(4) == 0 {
		return v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}
	}
	return v1.ContainerState{Running: &v1.ContainerStateRunning{}}
}

// pod makes a pod of up to three containers, some of which run, with images of which some are the same by other names.
func (w *world) pod(name types.NamespacedName) *v1.Pod {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: name.Namespace, Name: name.Name}}
	pod.Spec.NodeName = w.one("", "n1", "n2", "n3", "gone")
	pod.Status.Phase = v1.PodPhase(w.one("Pending", "Running", "Running", "Running", "Succeeded", "Failed"))
	for i := w.random.Intn(4); i > 0; i-- {
		name := fmt.Sprintf("c%d", i)
		image := w.one("a", "a:latest", "docker.io/library/a", "a@"+digestA, "b:1", "registry/c", "Wrong Name")
		status := v1.ContainerStatus{Name: name, State: w.state()}
		status.ImageID = w.one("", "docker-pullable://a@"+digestA, "docker.io/library/a@"+digestB, digestA)
		if w.random.Intn(5) == 0 {
			pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers,
				v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: name, Image: image}})
			pod.Status.EphemeralContainerStatuses = append(pod.Status.EphemeralContainerStatuses, status)
			continue
		}
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: name, Image: image})
		pod.Status.ContainerStatuses = append([]v1.ContainerStatus{status}, pod.Status.ContainerStatuses...)
	}
	return pod
}

func (w *world) node(name string) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	for i := w.random.Intn(3); i > 0; i-- {
		node.Status.Images = append(node.Status.Images, v1.ContainerImage{
			Names:     []string{w.one("docker.io/library/a@"+digestA, "<none>@<none>"), w.one("a", "a:latest", "b:1", "registry/c")},
			SizeBytes: w.random.Int63n(5) * 100,
		})
	}
	return node
}

// step makes something happen and tells the plugin.
func (w *world) step(pl *RunningImageLocality) {
	name := types.NamespacedName{Namespace: w.one("x", "y"), Name: w.one("p1", "p2", "p3", "p4")}
	switch w.random.Intn(8) {
	case 0, 1, 2:
		// A new pod, a change, or another pod of the same name whose predecessor's end was not seen.
		pod := w.pod(name)
		w.pods[name] = pod
		w.events = append(w.events, fmt.Sprintf("pod %s is on %q, %s", name, pod.Spec.NodeName, pod.Status.Phase))
		pl.podIs(pod)
	case 3:
		// The same again, as a resync tells it.
		if pod, ok := w.pods[name]; ok {
			pl.podIs(pod)
		}
	case 4:
		delete(w.pods, name)
		w.events = append(w.events, fmt.Sprintf("pod %s is deleted", name))
		if w.random.Intn(2) == 0 {
			pl.podIsGone(w.pod(name))
			return
		}
		// The deletion was missed: the object is old, or missed altogether.
		tombstone := cache.DeletedFinalStateUnknown{Key: name.String(), Obj: w.pod(name)}
		if w.random.Intn(2) == 0 {
			tombstone.Obj = nil
		}
		pl.podIsGone(tombstone)
	case 5, 6:
		node := w.node(w.one("n1", "n2", "n3"))
		w.nodes[node.Name] = node
		w.events = append(w.events, "node "+node.Name)
		pl.nodeIs(node)
	case 7:
		name := w.one("n1", "n2", "n3")
		delete(w.nodes, name)
		w.events = append(w.events, "node "+name+" is deleted")
		pl.nodeIsGone(cache.DeletedFinalStateUnknown{Key: name, Obj: w.node(name)})
	}
}

// recount counts what the world runs, in the plainest way.
func (w *world) recount() (running counted, pods int) {
	running = counted{}
	for _, pod := range w.pods {
		counts := false
		for _, status := range append(append([]v1.ContainerStatus{}, pod.Status.ContainerStatuses...), pod.Status.EphemeralContainerStatuses...) {
			if pod.Spec.NodeName == "" || pod.Status.Phase != v1.PodRunning || status.State.Running == nil {
				continue
			}
			names := map[string]bool{}
			for _, container := range pod.Spec.Containers {
				if container.Name == status.Name {
					names[writtenAs[container.Image]] = true
				}
			}
			for _, container := range pod.Spec.EphemeralContainers {
				if container.Name == status.Name {
					names[writtenAs[container.Image]] = true
				}
			}
			names[reportedAs[status.ImageID]] = true
			delete(names, "")
			for name := range names {
				running.add(name, pod.Spec.NodeName)
				counts = true
			}
		}
		if counts {
			pods++
		}
	}
	return running, pods
}

var (
	writtenAs = map[string]string{
		"a": "docker.io/library/a:latest", "a:latest": "docker.io/library/a:latest", "docker.io/library/a": "docker.io/library/a:latest",
		"a@" + digestA: "docker.io/library/a@" + digestA, "b:1": "docker.io/library/b:1", "registry/c": "docker.io/registry/c:latest",
		"docker.io/library/a@" + digestA: "docker.io/library/a@" + digestA,
	}
	reportedAs = map[string]string{
		"docker-pullable://a@" + digestA: "docker.io/library/a@" + digestA,
		"docker.io/library/a@" + digestB: "docker.io/library/a@" + digestB,
	}
)

// recountSizes returns the average size of each image, and the average of these.
func (w *world) recountSizes() (sizes map[string]int64, average int64) {
	sums, reports := map[string]int64{}, map[string]int64{}
	for _, node := range w.nodes {
		for _, image := range node.Status.Images {
			for _, written := range image.Names {
				if name := writtenAs[written]; name != "" && image.SizeBytes > 0 {
					sums[name] += image.SizeBytes
					reports[name]++
				}
			}
		}
	}
	if len(sums) == 0 {
		return nil, maxSize
	}
	sizes = map[string]int64{}
	for name := range sums {
		sizes[name] = sums[name] / reports[name]
		average += sizes[name]
	}
	return sizes, average / int64(len(sizes))
}

// TestIndexIsWhatRuns lets random things happen, and compares the index after each of them with a count of everything.
func TestIndexIsWhatRuns(t *testing.T) {
	for seed := int64(0); seed < 20; seed++ {
		w := &world{random: rand.New(rand.NewSource(seed)), pods: map[types.NamespacedName]*v1.Pod{}, nodes: map[string]*v1.Node{}}
		names := newNames()
		pl := &RunningImageLocality{names: names, index: newIndex(names), valuation: valuation{sizeWeight: 50}, counters: newCounters(nil)}
		for step := 0; step < 500; step++ {
			w.step(pl)
			want, pods := w.recount()
			if got := pl.index.content(t); !reflect.DeepEqual(got, want) {
				t.Fatalf("seed %d, step %d, after %q: the index holds\n%v\nwant\n%v", seed, step, w.events[len(w.events)-1], got, want)
			}
			if got := len(pl.index.pods); got != pods {
				t.Fatalf("seed %d, step %d: %d pods are kept, want the %d that run something", seed, step, got, pods)
			}
			if got := pl.index.nodes.existing; got != len(w.nodes) {
				t.Fatalf("seed %d, step %d: %d nodes exist, want %d", seed, step, got, len(w.nodes))
			}
			sizes, average := w.recountSizes()
			for _, name := range []string{"docker.io/library/a:latest", "docker.io/library/a@" + digestA, "docker.io/library/b:1", "docker.io/registry/c:latest"} {
				size, known := sizes[name]
				if !known {
					size = average
				}
				if got := pl.index.sizes.of(name); got != size {
					t.Fatalf("seed %d, step %d: the size of %s is %d, want %d", seed, step, name, got, size)
				}
			}
			if got := len(pl.index.sizes.images); got != len(sizes) {
				t.Fatalf("seed %d, step %d: the sizes of %d images are kept, want %d", seed, step, got, len(sizes))
			}
		}
		for name := range w.pods {
			pl.podIsGone(cache.DeletedFinalStateUnknown{Key: name.String()})
		}
		for name := range w.nodes {
			pl.nodeIsGone(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		x := pl.index
		if len(x.images)+len(x.pods)+len(x.nodes.records)+len(x.sizes.images) > 0 || x.sizes.sum != 0 || x.nodes.existing != 0 {
			t.Errorf("seed %d: when nothing is left, the index holds %d images, %d pods, %d nodes, %d sizes", seed, len(x.images), len(x.pods), len(x.nodes.records), len(x.sizes.images))
		}
	}
}

// TestMatchesDoNotChange keeps what a cycle read while nodes come, go and take over each other's numbers.
func TestMatchesDoNotChange(t *testing.T) {
	x := newIndex(newNames())
	pod := func(i int) types.NamespacedName { return types.NamespacedName{Name: fmt.Sprintf("pod-%d", i)} }
	x.setPod(pod(1), "n1", []string{"a"})
	x.setPod(pod(2), "n2", []string{"a", "b"})
	found := x.match([]string{"a", "b"}, valuation{})
	x.setPod(pod(1), "n3", []string{"a", "b"})
	x.setPod(pod(2), "", nil)
	x.setPod(pod(4), "n4", []string{"a", "b"})
	for node, want := range map[string]int64{"n1": 1 * fullWorth, "n2": 2 * fullWorth, "n3": 0, "n4": 0} {
		if got := int64(found.of(node).sum); got != want {
			t.Errorf("%s was worth %d, and now %d", node, want, got)
		}
	}
	if x.nodes.next > 3 {
		t.Errorf("%d numbers for two nodes, or three while one pod moves", x.nodes.next)
	}
}

func TestWorthOfManyContainersIsBounded(t *testing.T) {
	x := newIndex(newNames())
	for i := 0; i < 3000; i++ {
		x.setPod(types.NamespacedName{Name: fmt.Sprintf("pod-%d", i)}, "n1", []string{"a", "b"})
	}
	if got := x.match([]string{"a", "b"}, valuation{containers: true}).of("n1").sum; got != math.MaxInt32 {
		t.Errorf("6,000 matches are worth %d, want no more than %d", got, math.MaxInt32)
	}
}

// TestIndexInParallel writes from two goroutines, as two informers do, and reads from 16 more.
func TestIndexInParallel(t *testing.T) {
	names := newNames()
	pl := &RunningImageLocality{names: names, index: newIndex(names), valuation: valuation{sizeWeight: 50}, counters: newCounters(nil)}
	w := &world{random: rand.New(rand.NewSource(1)), pods: map[types.NamespacedName]*v1.Pod{}, nodes: map[string]*v1.Node{}}
	other := &world{random: rand.New(rand.NewSource(2)), nodes: map[string]*v1.Node{}}
	var wg sync.WaitGroup
	wg.Add(2)
	go func() {
		defer wg.Done()
		for i := 0; i < 500; i++ {
			w.step(pl)
		}
	}()
	go func() {
		defer wg.Done()
		for i := 0; i < 500; i++ {
			pl.nodeIs(other.node(other.one("n1", "n2", "n3", "n4")))
		}
	}()
	for worker := 0; worker < 16; worker++ {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for i := 0; i < 200; i++ {
				found := pl.index.match([]string{"docker.io/library/a:latest", "docker.io/library/b:1"}, pl.valuation)
				for _, node := range []string{"n1", "n2", "n3", "gone", "unknown"} {
					if worth := found.of(node).sum; worth < 0 || node == "unknown" && worth != 0 {
						t.Errorf("%s is worth %d", node, worth)
					}
				}
			}
		}()
	}
	wg.Wait()
}
