// SPDX-License-Identifier: Apache-2.0

package podclient

import (
	"bytes"
	"encoding/json"

	"google.golang.org/protobuf/encoding/protowire"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/shared/laterfields"
)

// serializer is one whose decoders look for later fields in what they decoded. client-go gets the decoders of a list and
// of the objects in the events of a watch from it.
type serializer struct {
	runtime.NegotiatedSerializer
	servers *servers
}

func (s serializer) DecoderToVersion(inner runtime.Decoder, to runtime.GroupVersioner) runtime.Decoder {
	return &decoder{s.NegotiatedSerializer.DecoderToVersion(inner, to), s.servers}
}

type decoder struct {
	runtime.Decoder
	servers *servers
}

func (d *decoder) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	object, kind, err := d.Decoder.Decode(data, defaults, into)
	if err == nil && d.servers.newer() {
		find(data, object)
	}
	return object, kind, err
}

// protobuf is what begins an object in Kubernetes' protobuf encoding, before its envelope, a runtime.Unknown. envelopeRaw
// and listItems are the field numbers of the object in it and of the items in a v1.PodList.
var protobuf = []byte("k8s\x00")

const envelopeRaw, listItems = 2, 2

// find looks for the later fields of the pods in an object that was decoded of the data.
func find(data []byte, object runtime.Object) {
	read, wire := laterfields.FromJSON, bytes.HasPrefix(data, protobuf)
	if wire {
		read = laterfields.FromProtobuf
		for _, data = range values(data[len(protobuf):], envelopeRaw) {
		}
	}
	set := func(data []byte, pod *v1.Pod) {
		// The pod of a bookmark has no UID.
		if pod.UID != "" {
			laterfields.Pods.Set(pod.UID, read(data, pod))
		}
	}
	switch object := object.(type) {
	case *v1.Pod:
		set(data, object)
	case *v1.PodList:
		var items [][]byte
		if wire {
			items = values(data, listItems)
		} else {
			var list struct{ Items []json.RawMessage }
			// It has been decoded once.
			_ = json.Unmarshal(data, &list)
			for _, item := range list.Items {
				items = append(items, item)
			}
		}
		for i := range items {
			if i < len(object.Items) {
				set(items[i], &object.Items[i])
			}
		}
	}
}

// values returns the values of a field in a message: messages or bytes.
func values(message []byte, field protowire.Number) (values [][]byte) {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return values
		}
		message = message[n:]
		if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
			return values
		}
		if number == field && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message)
			values = append(values, value)
		}
		message = message[n:]
	}
	return values
}
