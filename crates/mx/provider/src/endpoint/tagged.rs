//! Tagged messages: what `fi_tsend`, `fi_trecv` and their relatives call.

super::calls::table! {
    TaggedOps, TaggedMsg:
        recv = recv, recvv = recvv, recvmsg = recvmsg, send = send, sendv = sendv,
        sendmsg = sendmsg, inject = inject, senddata = senddata, injectdata = injectdata;
    incoming(tag, ignore) => Subject::tagged(tag, ignore);
    outgoing(tag) => Subject::tagged(tag, 0);
}
