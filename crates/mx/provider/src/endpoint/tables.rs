//! The tables of calls that libfabric finds.

/// Remote memory: what `fi_read`, `fi_write` and their relatives call.
pub(super) mod rma {
    super::super::calls::table! {
        RmaOps, RmaMsg:
            read = recv, readv = recvv, readmsg = recvmsg, write = send, writev = sendv,
            writemsg = sendmsg, inject = inject, writedata = senddata, injectdata = injectdata;
        incoming(offset, key) => Subject::memory(offset, key);
        outgoing(offset, key) => Subject::memory(offset, key);
    }
}

/// Tagged messages: what `fi_tsend`, `fi_trecv` and their relatives call.
pub(super) mod tagged {
    super::super::calls::table! {
        TaggedOps, TaggedMsg:
            recv = recv, recvv = recvv, recvmsg = recvmsg, send = send, sendv = sendv,
            sendmsg = sendmsg, inject = inject, senddata = senddata, injectdata = injectdata;
        incoming(tag, ignore) => Subject::tagged(tag, ignore);
        outgoing(tag) => Subject::tagged(tag, 0);
    }
}

/// Messages without a tag: what `fi_send`, `fi_recv` and their relatives call.
pub(super) mod untagged {
    super::super::calls::table! {
        MsgOps, Msg:
            recv = recv, recvv = recvv, recvmsg = recvmsg, send = send, sendv = sendv,
            sendmsg = sendmsg, inject = inject, senddata = senddata, injectdata = injectdata;
        incoming() => Subject::UNTAGGED;
        outgoing() => Subject::UNTAGGED;
    }
}
