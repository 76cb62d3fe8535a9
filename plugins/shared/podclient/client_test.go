// SPDX-License-Identifier: Apache-2.0

package podclient

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/streaming"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
)

// message returns one with a field whose value is a message or bytes, after the others.
func message(others []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(others, number, protowire.BytesType), value)
}

// envelope returns an object as API servers send it.
func envelope(kind string, object []byte) []byte {
	unknown := runtime.Unknown{TypeMeta: runtime.TypeMeta{APIVersion: "v1", Kind: kind}, Raw: object}
	data, err := unknown.Marshal()
	if err != nil {
		panic(err)
	}
	return append([]byte("k8s\x00"), data...)
}

// server is an API server's part for pods, in both encodings. Each pod has a gate, which the types of 1.23 lack, and the
// gate's name is that of the pod.
type server struct {
	sync.Mutex
	json    bool
	version string // empty for 403
	asked   int
	lists   int
	watches chan string
}

func (s *server) pod(name string) []byte {
	pod := v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), ResourceVersion: "7"}}
	if name == "" {
		pod = v1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "8"}}
	}
	if s.json {
		return []byte(fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"namespace":%q,"name":%q,"uid":%q,"resourceVersion":%q},"spec":{"schedulingGates":[{"name":%q}]}}`,
			pod.Namespace, name, name, pod.ResourceVersion, name))
	}
	meta, _ := pod.ObjectMeta.Marshal()
	spec, _ := pod.Spec.Marshal()
	return message(message(nil, 1, meta), 2, message(spec, 38, message(nil, 1, []byte(name))))
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.Lock()
	defer s.Unlock()
	if r.URL.Path == "/version" {
		if s.asked++; s.version == "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		_ = json.NewEncoder(w).Encode(map[string]string{"gitVersion": s.version, "major": "1", "minor": "24+"})
		return
	}
	kind := runtime.ContentTypeProtobuf
	if s.json {
		kind = runtime.ContentTypeJSON
	}
	w.Header().Set("Content-Type", kind)
	if r.URL.Query().Get("watch") == "" {
		s.lists++
		// A list has two parts.
		token, names := "more", []string{"first"}
		if r.URL.Query().Get("continue") != "" {
			token, names = "", []string{"second"}
		}
		if s.json {
			var items []string
			for _, name := range names {
				items = append(items, string(s.pod(name)))
			}
			fmt.Fprintf(w, `{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"7","continue":%q},"items":[%s]}`, token, strings.Join(items, ","))
			return
		}
		meta, _ := (&metav1.ListMeta{ResourceVersion: "7", Continue: token}).Marshal()
		list := message(nil, 1, meta)
		for _, name := range names {
			list = message(list, 2, s.pod(name))
		}
		_, _ = w.Write(envelope("PodList", list))
		return
	}
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), kind)
	events := streaming.NewEncoder(info.StreamSerializer.Framer.NewFrameWriter(w), scheme.Codecs.EncoderForVersion(info.StreamSerializer.Serializer, v1.SchemeGroupVersion))
	send := func(event, name string) {
		object := s.pod(name)
		if !s.json {
			object = envelope("Pod", object)
		}
		_ = events.Encode(&metav1.WatchEvent{Type: event, Object: runtime.RawExtension{Raw: object}})
		w.(http.Flusher).Flush()
	}
	w.(http.Flusher).Flush()
	s.Unlock()
	defer s.Lock()
	for {
		select {
		case name, open := <-s.watches:
			switch {
			case !open || name == "end":
				return
			case name == "":
				send("BOOKMARK", name)
			case strings.HasPrefix(name, "-"):
				send("DELETED", name[1:])
			default:
				send("ADDED", name)
			}
		case <-r.Context().Done():
			return
		}
	}
}

// start starts an informer of the server's pods with the client of New.
func (s *server) start(t *testing.T) {
	s.watches = make(chan string)
	real := httptest.NewServer(s)
	stop, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		<-stopped
		real.Close()
		laterfields.Pods = laterfields.Store{}
	})
	informer := coreinformers.NewPodInformer(s.client(t, real.URL), "", 0, cache.Indexers{})
	Forget(informer)
	go func() {
		informer.Run(stop)
		close(stopped)
	}()
	if !cache.WaitForCacheSync(stop, informer.HasSynced) {
		t.Fatal("the informer has not synced")
	}
}

func (s *server) client(t testing.TB, url string) kubernetes.Interface {
	config := &rest.Config{Host: url, ContentConfig: rest.ContentConfig{ContentType: runtime.ContentTypeProtobuf}}
	if s.json {
		config.ContentType = runtime.ContentTypeJSON
	}
	plain, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	client, err := New(plain, config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// waitFor waits until these pods have their gates in the store, and a pod that is not there has none.
func waitFor(t *testing.T, gated, none string) {
	t.Helper()
	if err := wait.PollImmediate(time.Millisecond, wait.ForeverTestTimeout, func() (bool, error) {
		for _, name := range strings.Fields(gated) {
			if found := laterfields.Pods.Of(types.UID(name)); found == nil || !reflect.DeepEqual(found.Gates, []string{name}) {
				return false, nil
			}
		}
		return laterfields.Pods.Of(types.UID(none)) == nil, nil
	}); err != nil {
		t.Fatalf("want gates of %s, and none of %s", gated, none)
	}
}

func TestLaterFieldsAreRead(t *testing.T) {
	for _, tt := range []struct {
		name, version string
		json          bool
	}{
		{"protobuf", "v1.24.17", false},
		{"JSON", "v1.37.2", true},
		{"a version with a suffix", "v1.27.3-gke.100", false},
		{"a version without numbers", "unknown", false},
		{"a server that does not tell its version", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &server{json: tt.json, version: tt.version}
			s.start(t)
			waitFor(t, "first second", "")
			for _, name := range []string{"third", "", "-third"} {
				s.watches <- name
				if name == "third" {
					waitFor(t, "first second third", "")
				}
			}
			waitFor(t, "first second", "third")
			if found := laterfields.Pods.Of(""); found != nil {
				t.Errorf("a bookmark has %+v", found)
			}
		})
	}
}

// TestUpgradeWhileTheSchedulerRuns has a server of 1.23, which has no later fields to send.
func TestUpgradeWhileTheSchedulerRuns(t *testing.T) {
	s := &server{version: "v1.23.17"}
	s.start(t)
	s.watches <- "third"
	s.watches <- "end"
	s.watches <- "fourth"
	if found := laterfields.Pods.Of("first"); found != nil {
		t.Errorf("a pod of a 1.23 server has %+v", found)
	}
	s.Lock()
	asked, lists := s.asked, s.lists
	s.version = "v1.24.0"
	s.Unlock()
	if asked != 3 || lists != 2 {
		t.Errorf("the server was asked %d times for its version, and for %d parts of lists; want one before 1 list of 2 parts and each of 2 watches", asked, lists)
	}
	s.watches <- "end"
	waitFor(t, "first second", "")
}

// BenchmarkDecode decodes a pod as without New, and with it for a server of 1.23 and for a newer one.
func BenchmarkDecode(b *testing.B) {
	data := envelope("Pod", (&server{}).pod("first"))
	info, _ := runtime.SerializerInfoForMediaType(scheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeProtobuf)
	plain := scheme.Codecs.WithoutConversion()
	for name, codecs := range map[string]runtime.NegotiatedSerializer{
		"plain": plain, "1.23": serializer{plain, &servers{known: older}}, "newer": serializer{plain, &servers{known: newer}},
	} {
		decoder := codecs.DecoderToVersion(info.Serializer, v1.SchemeGroupVersion)
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; i < b.N; i++ {
				if _, _, err := decoder.Decode(data, nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
